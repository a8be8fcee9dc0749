"""A whole network as a C99 program: network.h, network.c, kernels.h, main.c.

Each layer is a function; kernels.h holds the helpers, rules and sums that they call, and nothing else. The tensors lie
in one static arena, as `tflq inspect` plans it. Only stdint.h and string.h are included; nothing is allocated.

The body of network_run: one call a layer, its tensors in the arena, and copies from and to variables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tflq.diagnosis.explain.explanation import Recording
from tflq.emit.c99.helpers import WINDOW
from tflq.emit.c99.layer import Layer, layer_of, tensor_words
from tflq.emit.c99.shared import Shared
from tflq.emit.c99.templates import ARENA, HEADER, KERNELS, MAIN, NETWORK, README, REALS, STATEFUL, STATELESS
from tflq.emit.c99.variables import (
    MOVES,
    SILENT,
    Variables,
    members_of,
    reset_text,
    struct_text,
    value_of,
    variables_of,
)
from tflq.emit.c99.words import array, identifier, stored_type
from tflq.errors import UnsupportedError, UsageError
from tflq.graph import ABSENT, DType, Graph, Node
from tflq.graph.arena import arena_of
from tflq.interpreter import Engine
from tflq.quoting import c_comment, c_string, markdown_code
from tflq.sampling.samples import RandomSamples


@dataclass(frozen=True)
class Calls:
    """The calls of a program.

    Attributes:
        lines: the body.
        constants: what it copies that no layer has.
        arena_bytes: of the tensors that are computed.
    """

    lines: tuple[str, ...]
    constants: tuple[str, ...]
    arena_bytes: int


def calls_of(graph: Graph, layers: Sequence[Layer], variables: Variables) -> Calls:
    """Write the calls.

    Args:
        graph: of the program: layers, and the operators that move variables.
        layers: in the order of their nodes.
        variables: of the network.
    """
    rest = iter(layers)
    steps = [(node, None if node.operator in MOVES else next(rest)) for node in graph.nodes]
    places = _Places(graph, steps, variables)
    lines: list[str] = []
    for (node, layer), outputs in zip(steps, _final_outputs(graph), strict=True):
        lines += places.move(node) if layer is None else places.call(layer)
        for t in outputs:
            name = c_string(graph.tensors[t].name)
            lines.append(f"    if (hook) hook(context, {t}, {name}, {places.bytes_at(t)}, {tensor_size(graph, t)});")
    for n, t in enumerate(graph.outputs):
        lines.append(f"    memcpy(outputs[{n}], {places.bytes_at(t)}, {tensor_size(graph, t)});")
    return Calls(tuple(lines), tuple(places.constants.values()), places.size)


def _final_outputs(graph: Graph) -> list[tuple[int, ...]]:
    """Return the outputs of each node, without variables that a later node writes again."""
    last = {t: i for i, node in enumerate(graph.nodes) for t in node.outputs}
    return [tuple(t for t in node.outputs if last[t] == i) for i, node in enumerate(graph.nodes)]


def tensor_size(graph: Graph, t: int) -> int:
    """Return the bytes of a tensor as it is stored."""
    return graph.tensors[t].size * graph.tensors[t].dtype.storage.itemsize


class _Places:
    """Where each tensor is: in the arena, the inputs, the state or a constant.

    A recurrent layer reads a variable while it writes the new value, so the new value is copied from the arena. Other
    layers never read the variable that they write, and write it in place.
    """

    def __init__(self, graph: Graph, steps: Sequence[tuple[Node, Layer | None]], variables: Variables) -> None:
        self.graph, self.variables = graph, variables
        self.constants: dict[int, str] = {}
        tensors, nodes = list(graph.tensors), []
        self._new: dict[int, tuple[int, ...]] = {}
        for node, layer in steps:
            kept = layer.keeps if layer else ()
            new = tuple(range(len(tensors), len(tensors) + len(kept)))
            tensors += [replace(tensors[t], is_variable=False) for t in kept]
            read = tuple(t for t in node.inputs if t not in variables)
            written = tuple(t for t in node.outputs if t not in variables)
            nodes.append(replace(node, inputs=read, outputs=(*written, *new)))
            if layer:
                self._new[layer.index] = new
        computed = {t for node in nodes for t in node.outputs}
        arena = arena_of(replace(graph, tensors=tensors, nodes=nodes, inputs=()))
        self._offsets = {b.tensor: b.offset for b in arena.buffers if b.tensor in computed}
        self.size = max((b.offset + b.size for b in arena.buffers if b.tensor in computed), default=0)

    def call(self, layer: Layer) -> list[str]:
        """Call a layer, and keep the variables that it changes."""
        new = dict(zip(layer.keeps, self._new[layer.index], strict=True))
        arguments = [self._argument(t) for t in layer.arguments]
        for t, place in new.items():
            kind = stored_type(self.graph.tensors[t].dtype.storage)
            arguments.append(f"({kind} *)(void *)(arena.at + {self._offsets[place]})")
        lines = [f"    {layer.name}({', '.join(arguments)});"]
        return lines + [self._assign(t, f"arena.at + {self._offsets[place]}") for t, place in new.items()]

    def move(self, node: Node) -> list[str]:
        """Copy from a variable or to it."""
        handle, t = node.inputs[0], value_of(node)
        if node.outputs:
            return [
                f"    memcpy({self.bytes_at(t)}, state->{self.variables[handle].name}, {tensor_size(self.graph, t)});"
            ]
        return [self._assign(handle, self.bytes_at(t))]

    def bytes_at(self, t: int) -> str:
        """Return the place of a tensor: in the arena or the state, a constant or an input."""
        if t in self.variables:
            return f"state->{self.variables[t].name}"
        if t in self._offsets:
            return f"arena.at + {self._offsets[t]}"
        data = self.graph.tensors[t].data
        if data is None:
            return f"inputs[{self.graph.inputs.index(t)}]"
        kind = stored_type(data.dtype)
        self.constants[t] = f"static const {kind} constant_{t}[{data.size}] = {{\n{array(data, kind)}\n}};"
        return f"constant_{t}"

    def _assign(self, t: int, source: str) -> str:
        member = self.variables[t]
        return f"    memcpy(state->{member.name}, {source}, {member.start.nbytes});"

    def _argument(self, t: int) -> str:
        if t in self.variables:
            return f"state->{self.variables[t].name}"
        kind = stored_type(self.graph.tensors[t].dtype.storage)
        if t in self._offsets:
            return f"({kind} *)(void *)(arena.at + {self._offsets[t]})"
        return f"(const {kind} *)inputs[{list(self.graph.inputs).index(t)}]"


CHECKS = ((0, 0), (1, 0))
"""(seed, samples before it) of samples for which the program is written, and which it must not depend on."""
CHECKS_OF_STATE = ((0, 0), (1, 1), (2, 6))
"""The same for a network that keeps state, which differs between them."""


@dataclass(frozen=True)
class Program:
    """A network in C99.

    Attributes:
        files: text by name.
        graph: what the program computes, with its own inputs and outputs.
        tensors: indices of the tensors that the callback sees, in order.
        arena_bytes: of the static arena.
        state_bytes: of the variables, which the caller keeps.
        left_out: nodes in front of and behind it that the caller computes, with the reason.
    """

    files: dict[str, str]
    graph: Graph
    tensors: tuple[int, ...]
    arena_bytes: int
    state_bytes: int
    left_out: dict[str, str]


def program_of(engine: Engine, model: str, arithmetic: str) -> Program:
    """Write the program of a lowered graph.

    What reads or writes real numbers at its borders is left to the caller: a QUANTIZE in front, what has no form in C
    behind (DEQUANTIZE, a softmax in floating point).

    Args:
        engine: of the graph, and of those that it runs.
        model: its name, for comments.
        arithmetic: whose integers, for comments.

    Raises:
        UnsupportedError: operators without a form in C (all of them in one message), no integers.
        UsageError: the network keeps state and the engine's samples are no stream.
    """
    graph, variables = engine.graph, variables_of(engine)
    if variables and not engine.is_stream:
        raise UsageError("the network keeps state: a program runs its samples as one stream, in TFLite's integers")
    front = _front(graph)
    checks = CHECKS_OF_STATE if variables else CHECKS
    (layers, shared, failures), *others = [_written(engine, *check, front) for check in checks]
    for found, _, _ in others:
        same = {(layer.index, layer.function, layer.constants) for layer in found}
        for layer in layers:
            if (layer.index, layer.function, layer.constants) not in same:
                failures[layer.index] = "which elements it reads depends on the data"
    behind = _behind(graph, failures, variables)
    kept = {layer.index: layer for layer in layers if layer.index not in behind}
    moves = [i for i, node in enumerate(graph.nodes) if node.operator in MOVES]
    inner = _program_graph(graph, front, behind, sorted((*kept, *moves)))
    words = {i: f"{graph.nodes[i].operator.upper()}: quantize the input as network.h says" for i in front}
    words |= {
        i: f"{graph.nodes[i].operator.upper()}: {failures.get(i, 'reads what is left to the caller')}" for i in behind
    }
    left_out = {graph.nodes[i].name: w for i, w in words.items()}
    return _assembled(inner, kept, shared, variables, model, arithmetic, left_out)


def _front(graph: Graph) -> set[int]:
    """Return the nodes that quantize real inputs."""
    found = set()
    for index, node in enumerate(graph.nodes):
        reads = [t for t in node.inputs if t != ABSENT and not graph.tensors[t].is_constant]
        is_border = len(reads) == 1 and reads[0] in graph.inputs and graph.tensors[reads[0]].dtype is DType.FLOAT32
        if is_border and all(graph.tensors[t].dtype.is_integer for t in node.outputs):
            found.add(index)
    return found


def _behind(graph: Graph, failures: dict[int, str], variables: Variables) -> set[int]:
    """Return the nodes behind the program: those without a form in C, and what reads them.

    Raises:
        UnsupportedError: they write integers or use variables, so that they are no border.
    """
    behind = set(failures)
    lost = {t for i in behind for t in graph.nodes[i].outputs}
    for index, node in enumerate(graph.nodes):
        if index in behind or lost.intersection(node.inputs):
            behind.add(index)
            lost.update(node.outputs)
    touched = {t for i in behind for t in (*graph.nodes[i].inputs, *graph.nodes[i].outputs)}
    keeps = not variables.keys().isdisjoint(touched)
    if keeps or any(graph.tensors[t].dtype.is_integer for t in lost) or len(behind) == len(graph.nodes):
        raise UnsupportedError(f"no c99 program, which computes integers: {_reasons(graph, failures)}")
    return behind


def _reasons(graph: Graph, failures: dict[int, str]) -> str:
    """Name each reason once, with the first layer that has it."""
    layers: dict[tuple[str, str], list[str]] = {}
    for index, why in failures.items():
        node = graph.nodes[index]
        layers.setdefault((node.operator.upper(), why), []).append(node.name)
    return "; ".join(
        f"{operator} '{names[0]}'{f' and {len(names) - 1} more' if len(names) > 1 else ''}: {why}"
        for (operator, why), names in layers.items()
    )


def _written(engine: Engine, seed: int, before: int, front: set[int]) -> tuple[list[Layer], Shared, dict[int, str]]:
    graph, recording = engine.graph, Recording()
    samples = RandomSamples(graph, before + 1, seed)
    engine = Engine(graph, graphs=engine.graphs, state="stream")
    if before:
        engine.run(samples.take(0, before))
    engine.listeners = (recording,)
    engine.run(samples.take(before, before + 1))
    shared, layers, failures = Shared(), [], {}
    known = {t for i, node in enumerate(graph.nodes) if i not in recording.inputs for t in node.outputs}
    for index, node in enumerate(graph.nodes):
        if index in front or index not in recording.inputs:  # what does not depend on the sample ran once before
            continue
        if node.operator in (*MOVES, *SILENT):
            continue
        name = identifier(f"{node.operator}_{index}")
        try:
            layers.append(layer_of(graph, index, name, recording.inputs[index], known, shared))
        except UnsupportedError as error:
            failures[index] = str(error)
    return layers, shared, failures


def _program_graph(graph: Graph, front: set[int], behind: set[int], kept: Sequence[int]) -> Graph:
    """Return the graph of these nodes: the integer tensors at the borders are its inputs and outputs."""
    nodes = [graph.nodes[i] for i in kept]
    inputs: list[int] = []
    for t in graph.inputs:
        codes = [graph.nodes[i].outputs[0] for i in sorted(front) if t in graph.nodes[i].inputs]
        is_read = any(t in node.inputs for node in nodes)
        inputs += codes + ([t] if is_read or not codes else [])
    outputs = [t for t in graph.outputs if not any(t in graph.nodes[i].outputs for i in behind)]
    written = {t for node in nodes for t in node.outputs}
    reads = {t for i in behind for t in graph.nodes[i].inputs if t in written}
    return replace(graph, nodes=nodes, inputs=tuple(inputs), outputs=(*outputs, *sorted(reads - set(outputs))))


def _assembled(
    graph: Graph,
    layers: Mapping[int, Layer],
    shared: Shared,
    variables: Variables,
    model: str,
    arithmetic: str,
    left_out: dict[str, str],
) -> Program:
    tensors = tuple(t for outputs in _final_outputs(graph) for t in outputs)
    calls = calls_of(graph, list(layers.values()), variables)
    title = f"{c_comment(model, 80)} in the integers of {arithmetic}, by tflq."
    helpers, rules = "\n\n".join(shared.helpers.values()), "\n\n".join(shared.primitives.values())
    windows = "\n\n".join([WINDOW, *shared.windows.values()]) if shared.windows else ""
    functions = "\n\n".join("\n".join([*layer.constants, layer.function]) for layer in layers.values())
    called = _only_used("\n\n".join([helpers, rules, windows]), functions)
    has_reals = re.search(r"\b(float|double)\b", re.sub(r"/\*.*?\*/", "", called + functions, flags=re.DOTALL))
    kernels = KERNELS.format(title=title, reals=REALS if has_reals else "", called=called)
    words = {"title": title} | (STATEFUL if variables else STATELESS)
    files = {
        "network.h": _header(graph, variables, words),
        "kernels.h": re.sub(r"\n{3,}", "\n\n", kernels),
        "network.c": NETWORK.format(
            functions="\n\n".join([*calls.constants, functions]),
            calls="\n".join(calls.lines),
            arena=ARENA.format(size=max(calls.arena_bytes, 8)) if calls.arena_bytes else "",
            reset=reset_text(variables),
            **words,
        ),
        "main.c": MAIN.format(**words),
        "README.md": README.format(
            model=markdown_code(model),
            arithmetic=arithmetic,
            layers=len(layers),
            arena=calls.arena_bytes,
            borders="\n".join(f"- {markdown_code(name)}: {why}" for name, why in left_out.items()) or "- nothing",
            **words,
        ),
    }
    state_bytes = sum(member.start.nbytes for member in members_of(variables))
    return Program(files, graph, tensors, calls.arena_bytes, state_bytes, left_out)


def _header(graph: Graph, variables: Variables, words: Mapping[str, str]) -> str:
    lines = []
    for word, tensors in (("INPUT", graph.inputs), ("OUTPUT", graph.outputs)):
        lines.append(f"#define NETWORK_{word}S {len(tensors)}")
        for n, t in enumerate(tensors):
            lines.append(f"/* {word.lower()} {n}: {c_comment(tensor_words(graph.tensors[t]))} */")
            lines.append(f"#define NETWORK_{word}_{n}_BYTES {tensor_size(graph, t)}")
        sizes = ", ".join(f"NETWORK_{word}_{n}_BYTES" for n in range(len(tensors)))
        lines.append(f"#define NETWORK_{word}_SIZES {{ {sizes} }}")
        lines.append(f"#define NETWORK_{word}_WORDS {sum((tensor_size(graph, t) + 7) // 8 for t in tensors)}")
    return HEADER.format(sizes="\n".join(lines), struct=struct_text(variables), **words)


def _only_used(kernels: str, functions: str) -> str:
    """Leave out functions that only others called which are not used themselves."""
    parts = kernels.split("\n\n")
    while True:
        everything = "\n".join([*parts, functions])
        unused = [
            part
            for part in parts
            if (found := re.search(r"static inline \w+ (\w+)\(", part))
            and len(re.findall(rf"\b{found.group(1)}\b", everything)) == 1
        ]
        if not unused:
            return "\n\n".join(parts)
        parts = [part for part in parts if part not in unused]

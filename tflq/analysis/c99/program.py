"""A whole network as a C99 program: network.h, network.c, kernels.h, main.c.

Each layer is a function; kernels.h holds the helpers, rules and sums that they call, and nothing else. The tensors lie
in one static arena, as `tflq inspect` plans it. Only stdint.h and string.h are included; nothing is allocated.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tflq.analysis.c99.helpers import WINDOW
from tflq.analysis.c99.layer import Layer, layer_of, tensor_words
from tflq.analysis.c99.shared import Shared
from tflq.analysis.c99.templates import HEADER, KERNELS, MAIN, NETWORK, README, REALS
from tflq.analysis.c99.words import identifier, stored_type
from tflq.analysis.explain.explanation import Recording
from tflq.analysis.inputs.random import RandomSamples
from tflq.errors import UnsupportedError
from tflq.graph import ABSENT, DType, Graph
from tflq.graph.arena import arena_of
from tflq.interpreter import Engine
from tflq.quoting import c_comment, c_string, markdown_code

CHECKS = 2
"""Samples for which the program is written: it must not depend on which one was recorded."""


@dataclass(frozen=True)
class Program:
    """A network in C99.

    Attributes:
        files: text by name.
        graph: what the program computes, with its own inputs and outputs.
        tensors: indices of the tensors that the callback sees, in order.
        arena_bytes: of the static arena.
        left_out: nodes in front of and behind it that the caller computes, with the reason.
    """

    files: dict[str, str]
    graph: Graph
    tensors: tuple[int, ...]
    arena_bytes: int
    left_out: dict[str, str]


def program_of(graph: Graph, model: str, arithmetic: str) -> Program:
    """Write the program of a lowered graph.

    What reads or writes real numbers at its borders is left to the caller: a QUANTIZE in front, what has no form in C
    behind (DEQUANTIZE, a softmax in floating point).

    Args:
        graph: lowered.
        model: its name, for comments.
        arithmetic: whose integers, for comments.

    Raises:
        UnsupportedError: operators without a form in C (all of them in one message), state, no integers.
    """
    if any(t.is_variable for t in graph.tensors):
        raise UnsupportedError("the network keeps state in variables, which c99 programs do not have yet")
    front = _front(graph)
    written = [_written(graph, seed, front) for seed in range(CHECKS)]
    layers, shared, failures = written[0]
    for layer, other in zip(layers, written[1][0], strict=False):
        if (layer.function, layer.constants) != (other.function, other.constants):
            failures[layer.index] = "which elements it reads depends on the data"
    behind = _behind(graph, failures)
    kept = [layer for layer in layers if layer.index not in behind]
    inner = _program_graph(graph, front, behind, [layer.index for layer in kept])
    words = {i: f"{graph.nodes[i].operator.upper()}: quantise the input as network.h says" for i in front}
    words |= {
        i: f"{graph.nodes[i].operator.upper()}: {failures.get(i, 'reads what is left to the caller')}" for i in behind
    }
    return _assembled(inner, kept, shared, model, arithmetic, {graph.nodes[i].name: w for i, w in words.items()})


def _front(graph: Graph) -> set[int]:
    """Return the nodes that quantise real inputs."""
    found = set()
    for index, node in enumerate(graph.nodes):
        reads = [t for t in node.inputs if t != ABSENT and not graph.tensors[t].is_constant]
        is_border = len(reads) == 1 and reads[0] in graph.inputs and graph.tensors[reads[0]].dtype is DType.FLOAT32
        if is_border and all(graph.tensors[t].dtype.is_integer for t in node.outputs):
            found.add(index)
    return found


def _behind(graph: Graph, failures: dict[int, str]) -> set[int]:
    """Return the nodes behind the program: those without a form in C, and what reads them.

    Raises:
        UnsupportedError: they write integers, so that they are no border.
    """
    behind = set(failures)
    lost = {t for i in behind for t in graph.nodes[i].outputs}
    for index, node in enumerate(graph.nodes):
        if index in behind or lost.intersection(node.inputs):
            behind.add(index)
            lost.update(node.outputs)
    if any(graph.tensors[t].dtype.is_integer for t in lost) or len(behind) == len(graph.nodes):
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


def _written(graph: Graph, seed: int, front: set[int]) -> tuple[list[Layer], Shared, dict[int, str]]:
    engine = Engine(graph)
    recording = Recording()
    engine.listeners = (recording,)
    engine.run(RandomSamples(engine.graph, 1, seed).take(0, 1))
    shared, layers, failures = Shared(), [], {}
    known = {t for i, node in enumerate(graph.nodes) if i not in recording.inputs for t in node.outputs}
    for index, node in enumerate(graph.nodes):
        if index in front or index not in recording.inputs:  # what does not depend on the sample ran once before
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
    graph: Graph, layers: Sequence[Layer], shared: Shared, model: str, arithmetic: str, left_out: dict[str, str]
) -> Program:
    arena = arena_of(replace(graph, inputs=()))
    computed = {t for node in graph.nodes for t in node.outputs}
    offsets = {b.tensor: b.offset for b in arena.buffers if b.tensor in computed}
    size = max((b.offset + b.size for b in arena.buffers if b.tensor in computed), default=0)
    calls, tensors = [], []
    for layer, node in zip(layers, graph.nodes, strict=True):
        arguments = ", ".join(_pointer(graph, t, offsets) for t in layer.arguments)
        calls.append(f"    {layer.name}({arguments});")
        for t in node.outputs:
            tensors.append(t)
            name = c_string(graph.tensors[t].name)
            calls.append(f"    if (hook) hook(context, {t}, {name}, arena.at + {offsets[t]}, {_bytes(graph, t)});")
    for n, t in enumerate(graph.outputs):
        source = f"arena.at + {offsets[t]}" if t in offsets else f"inputs[{graph.inputs.index(t)}]"
        calls.append(f"    memcpy(outputs[{n}], {source}, {_bytes(graph, t)});")
    title = f"{c_comment(model, 80)} in the integers of {arithmetic}, by tflq."
    helpers, rules = "\n\n".join(shared.helpers.values()), "\n\n".join(shared.primitives.values())
    windows = "\n\n".join([WINDOW, *shared.windows.values()]) if shared.windows else ""
    functions = "\n\n".join("\n".join([*layer.constants, layer.function]) for layer in layers)
    called = _only_used("\n\n".join([helpers, rules, windows]), functions)
    has_reals = re.search(r"\b(float|double)\b", re.sub(r"/\*.*?\*/", "", called + functions, flags=re.DOTALL))
    kernels = KERNELS.format(title=title, reals=REALS if has_reals else "", called=called)
    files = {
        "network.h": _header(graph, title),
        "kernels.h": re.sub(r"\n{3,}", "\n\n", kernels),
        "network.c": NETWORK.format(title=title, functions=functions, calls="\n".join(calls), size=max(size, 8)),
        "main.c": MAIN.format(title=title),
        "README.md": README.format(
            model=markdown_code(model),
            arithmetic=arithmetic,
            layers=len(layers),
            arena=size,
            borders="\n".join(f"- {markdown_code(name)}: {why}" for name, why in left_out.items()) or "- nothing",
        ),
    }
    return Program(files, graph, tuple(tensors), size, left_out)


def _pointer(graph: Graph, t: int, offsets: dict[int, int]) -> str:
    kind = stored_type(graph.tensors[t].dtype.storage)
    if t in offsets:
        return f"({kind} *)(void *)(arena.at + {offsets[t]})"
    return f"(const {kind} *)inputs[{list(graph.inputs).index(t)}]"


def _bytes(graph: Graph, t: int) -> int:
    tensor = graph.tensors[t]
    return tensor.size * tensor.dtype.storage.itemsize


def _header(graph: Graph, title: str) -> str:
    lines = []
    for word, tensors in (("INPUT", graph.inputs), ("OUTPUT", graph.outputs)):
        lines.append(f"#define NETWORK_{word}S {len(tensors)}")
        for n, t in enumerate(tensors):
            lines.append(f"/* {word.lower()} {n}: {c_comment(tensor_words(graph.tensors[t]))} */")
            lines.append(f"#define NETWORK_{word}_{n}_BYTES {_bytes(graph, t)}")
        sizes = ", ".join(f"NETWORK_{word}_{n}_BYTES" for n in range(len(tensors)))
        lines.append(f"#define NETWORK_{word}_SIZES {{ {sizes} }}")
        lines.append(f"#define NETWORK_{word}_WORDS {sum((_bytes(graph, t) + 7) // 8 for t in tensors)}")
    return HEADER.format(title=title, sizes="\n".join(lines))


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

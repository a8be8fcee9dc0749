"""One layer as a C function: its kernel is run once, recorded, and what was recorded becomes loops.

Layers over a sequence: the function of one step, and the loop that calls it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from tflq.diagnosis.explain.recording import RecordedNode
from tflq.emit.c99.bounds import bounds_of_type
from tflq.emit.c99.builder import Builder
from tflq.emit.c99.expression import Buffer
from tflq.emit.c99.recorder import ProgramOperations
from tflq.emit.c99.shared import Shared
from tflq.emit.c99.stored import computed
from tflq.emit.c99.text import FunctionText
from tflq.emit.c99.words import stored_type
from tflq.errors import UnsupportedError
from tflq.graph import ABSENT, Affine, Array, Graph, Node, Operands, Tensor
from tflq.interpreter.execution.control import CONTROL
from tflq.interpreter.recording.primitive import Ids
from tflq.interpreter.recording.tape import Kind
from tflq.interpreter.registry import kernel, kernel_name
from tflq.quoting import c_comment

SEQUENCES = ("unidirectional_sequence_lstm",)
"""Operators of input [B, T, I], or [T, B, I] with `time_major`, whose state is variable tensors."""


@dataclass(frozen=True)
class Step:
    """One step of one sequence; with `time_major`, of all sequences at once, as TFLite computes them.

    Attributes:
        graph: the layer's, with the shapes of one step.
        inputs: what it reads.
        sequences: how many are computed one after the other.
        steps: of each.
    """

    graph: Graph
    inputs: list[Array | None]
    sequences: int
    steps: int

    def loop(self, name: str, layer: Layer) -> str:
        """Return the function that calls `layer`, that of one step, for all of them.

        The variables' new values are memory that each step reads and writes: it gets a copy of what it reads.
        """
        head = re.search(rf"static void {layer.name}\(([^)]*)\)", layer.function)
        assert head is not None
        words = head[1].split(", ")
        names = [word.split("*")[1] for word in words]
        kept = dict(zip(layer.keeps, names[len(layer.arguments) :], strict=True))
        lines, before, given = [], [], []
        turn = f"(sequence * {self.steps} + step)" if self.sequences > 1 else "step"
        for t, own in (*zip(layer.arguments, names, strict=False), *kept.items()):
            size = self.graph.tensors[t].size
            is_state = t in kept
            place = f" + sequence * {size}" if is_state and self.sequences > 1 else f" + {turn} * {size}"
            place = "" if is_state and self.sequences == 1 else place
            if not is_state or own == kept[t]:
                given.append(own + place)
                continue
            kind = stored_type(self.graph.tensors[t].dtype.storage)
            lines.append(f"    static {kind} {own}_before[{size}];")
            before.append(f"        memcpy({own}_before, {kept[t]}{place}, sizeof {own}_before);")
            given.append(f"{own}_before")
            lines.append(f"    memcpy({kept[t]}, {own}, {self.sequences} * sizeof {own}_before);")
        loops = [f"for (int32_t step = 0; step < {self.steps}; step++) {{"]
        if self.sequences > 1:
            loops = [f"for (int32_t sequence = 0; sequence < {self.sequences}; sequence++) {{", *loops]
        pads = ["    " * (n + 1) for n in range(len(loops))]
        body = [*before, f"        {layer.name}({', '.join(given)});"]
        lines += [pad + loop for pad, loop in zip(pads, loops, strict=True)]
        lines += ["    " * (len(loops) - 1) + line for line in body]
        lines += [pad + "}" for pad in reversed(pads)]
        return "\n".join([f"static void {name}({', '.join(words)})", "{", *lines, "}"])


def step_of(graph: Graph, index: int, inputs: Sequence[Array | None]) -> Step | None:
    """Return one step of a node over a sequence, lowered for it; None for other nodes.

    Args:
        graph: lowered.
        index: of the node.
        inputs: what it reads for one sample, dtype[*shape].
    """
    node = graph.nodes[index]
    if node.operator not in SEQUENCES or node.arithmetic != "tflite":
        return None
    x, y = node.inputs[0], node.outputs[0]
    together = node.attributes.boolean("time_major", False)
    first, second = graph.tensors[x].shape[:2]
    batch, steps = (1, first) if together else (first, second)
    lead = (1, second) if together else (1, 1)
    tensors, given = list(graph.tensors), list(inputs)
    for t in (x, y):
        tensors[t] = replace(tensors[t], shape=(*lead, tensors[t].shape[-1]))
    for position, t in enumerate(node.inputs):
        values = given[position]
        if t == ABSENT or values is None:
            continue
        if tensors[t].is_variable:
            tensors[t] = replace(tensors[t], shape=(batch, tensors[t].size // batch))
            tensors[t] = replace(tensors[t], shape=(1, tensors[t].shape[1])) if batch > 1 else graph.tensors[t]
            given[position] = values.reshape(-1)[: tensors[t].size].reshape(tensors[t].shape)
        elif t == x:
            given[position] = values[: lead[0], : lead[1]]
    nodes = list(graph.nodes)
    one = replace(graph, tensors=tensors)
    params = kernel(node.arithmetic, kernel_name(node)).lower(node, one.operands(index))
    nodes[index] = replace(node, params=params)
    return Step(replace(one, nodes=nodes), given, batch, steps)


@dataclass(frozen=True)
class Layer:
    """One layer in C.

    Attributes:
        index: of the node.
        name: of the function.
        constants: their declarations.
        function: its text.
        arguments: tensors that are passed to it, inputs before outputs.
        keeps: variable tensors whose new values it writes behind them.
    """

    index: int
    name: str
    constants: tuple[str, ...]
    function: str
    arguments: tuple[int, ...]
    keeps: tuple[int, ...] = ()


def layer_of(
    graph: Graph, index: int, name: str, inputs: Sequence[Array | None], known: Collection[int], shared: Shared
) -> Layer:
    """Write one layer.

    Args:
        graph: lowered.
        index: of the node.
        name: of the function.
        inputs: what the node reads for one sample, dtype[*shape].
        known: tensors that are the same for every sample, beside the constants.
        shared: what the functions of the program share.

    Raises:
        UnsupportedError: the layer has no form in C, with the reason.
    """
    step = step_of(graph, index, inputs)
    if step is None:
        return _layer(graph, index, name, inputs, known, shared)
    layer = _layer(step.graph, index, f"{name}_step", step.inputs, known, shared)
    text = f"{_description(graph, index, 'one call a step')}\n{step.loop(name, layer)}"
    return replace(layer, name=name, function=f"{layer.function}\n\n{text}")


def _layer(
    graph: Graph, index: int, name: str, inputs: Sequence[Array | None], known: Collection[int], shared: Shared
) -> Layer:
    node, operands = graph.nodes[index], graph.operands(index)
    recorded = _recorded(node, operands, inputs)
    read = [None if t == ABSENT or x is None else x for t, x in zip(node.inputs, inputs, strict=True)]
    buffers = [
        None if x is None else _buffer(_name("x", position), x, operands.inputs[position])
        for position, x in enumerate(read)
    ]
    given = {t for t in node.inputs if t != ABSENT and (graph.tensors[t].is_constant or t in known)}
    constants = {i for i, t in enumerate(node.inputs) if t in given}
    _freeze(recorded, constants)
    keeps = tuple(t for t in node.inputs if t != ABSENT and graph.tensors[t].is_variable)
    keeps = keeps[: recorded.results - len(node.outputs)]
    written = [
        *((_name("y", n), t) for n, t in enumerate(node.outputs)),
        *((_name("next", n), t) for n, t in enumerate(keeps)),
    ]
    names = {b.name for b in buffers if b is not None} | {name for name, _ in written}
    text = FunctionText(shared, name, recorded.tape, names)
    builder = Builder(recorded.tape, buffers)
    try:
        outputs = _filled(builder, [recorded.numbers(n) for n in range(len(written))], graph, written)
    except RecursionError:
        raise UnsupportedError("an element follows from hundreds of operations one after the other") from None
    lines = [
        f"    static {stored_type(scratch.dtype)} {scratch.name}[{scratch.size}];"
        for scratch in dict.fromkeys(n.target for n in builder.nests if n.target not in outputs)
    ]
    for nest in builder.nests:
        lines += text.nest(nest)
    body = "\n".join(lines)
    used = [i for i, b in enumerate(buffers) if b is not None and i not in constants and _is_read(b.name, body)]
    words = [f"const {stored_type(b.dtype)} *{b.name}" for i in used if (b := buffers[i])]
    words += [f"{stored_type(b.dtype)} *{b.name}" for b in outputs]
    head = _description(graph, index, recorded.source)
    function = f"{head}\nstatic void {name}({', '.join(words)})\n{{\n{body}\n}}"
    arguments = (*(node.inputs[i] for i in used), *node.outputs)
    return Layer(index, name, tuple(text.constants.values()), function, arguments, keeps)


def _filled(
    builder: Builder, numbers: Sequence[Ids | None], graph: Graph, written: Sequence[tuple[str, int]]
) -> list[Buffer]:
    """Fill the outputs, those of the last operations last: they may read the others."""
    found = {}
    for ids, (name, t) in zip(numbers, written, strict=True):
        if ids is None:
            raise UnsupportedError("its kernel computes in a way that is not recorded")
        found[name] = Buffer(name, graph.tensors[t].dtype.storage, 0, 0, ids.size), ids
    for target, ids in sorted(found.values(), key=lambda pair: int(computed(builder.tape, pair[1]).max())):
        builder.output(target, ids)
    return [target for target, _ in found.values()]


def _recorded(node: Node, operands: Operands, inputs: Sequence[Array | None]) -> RecordedNode:
    """Record a node's kernel; raises as `layer_of`."""
    if node.operator in CONTROL:
        raise UnsupportedError("an operator of control flow or resources has no form in C")
    if kernel(node.arithmetic or "", kernel_name(node)).stateful:
        raise UnsupportedError("it gives other numbers in each call")
    recorded = RecordedNode(node, operands, inputs, ProgramOperations)
    if recorded.failure:
        raise UnsupportedError(f"it could not be recorded: {recorded.failure}")
    return recorded


def _name(word: str, position: int) -> str:
    return f"{word}{position}" if position else word


def _freeze(recorded: RecordedNode, constants: Collection[int]) -> None:
    """Make constant inputs of the tape what they are: params."""
    records = recorded.tape.records
    for n, record in enumerate(records):
        if record.kind is Kind.INPUT and record.position in constants:
            records[n] = replace(record, kind=Kind.PARAM)


def _buffer(name: str, x: Array, tensor: Tensor | None) -> Buffer:
    if x.dtype.kind not in "biuf":
        raise UnsupportedError(f"elements of type {x.dtype}")
    low, high = bounds_of_type(x.dtype)
    if tensor is not None and x.dtype.kind in "iu":
        low, high = max(low, tensor.dtype.minimum), min(high, tensor.dtype.maximum)
    return Buffer(name, x.dtype, low, high, x.size)


def _is_read(name: str, body: str) -> bool:
    return re.search(rf"\b{name}\b", body) is not None


def _description(graph: Graph, index: int, source: str) -> str:
    node = graph.nodes[index]
    rule = kernel(node.arithmetic or "", kernel_name(node)).summary
    lines = [f"{node.operator.upper()} '{node.name}' ({node.arithmetic})"]
    for word, tensors in (("reads", node.inputs), ("writes", node.outputs)):
        for t in tensors:
            if t != ABSENT and not graph.tensors[t].is_constant:
                lines.append(f"{word} {tensor_words(graph.tensors[t])}")
    if rule:
        lines.append(rule)
    lines.append(f"source: {source}")
    return "/* " + "\n * ".join(map(c_comment, lines)) + "\n */"


def tensor_words(tensor: Tensor) -> str:
    """Return a tensor's name, type, shape, scale and zero point."""
    shape = "x".join(map(str, tensor.shape)) or "1"
    words = f"{tensor.dtype.value}[{shape}] '{tensor.name}'"
    found = tensor.quantization
    if isinstance(found, Affine) and not found.is_per_axis:
        words += f", scale {float(found.scale[0])!r}, zero point {int(found.zero_point[0])}"
    return words

"""Operators that move data, and the two halves of FakeQuantize."""

from __future__ import annotations

import numpy as np

from tflq.converters.openvino.emit.writer import Writer
from tflq.converters.passes.patterns import TO_FIRST, axis_first, order_first, shape_first
from tflq.errors import UnsupportedError
from tflq.graph import FakeQuantize, Node
from tflq.interpreter.kernels.openvino.levels import input_rule


def reshape(writer: Writer, node: Node) -> None:
    """RESHAPE, SQUEEZE, EXPAND_DIMS: Reshape in the graph's own order of elements."""
    shape = writer.tensor(node.outputs[0]).shape
    value = writer.reshaped(writer.read_plain(node.inputs[0]), shape, node.name)
    writer.values[node.outputs[0]] = (
        writer.transposed(value, TO_FIRST, f"{node.name}/nchw") if len(shape) == 4 else value
    )


def transpose(writer: Writer, node: Node) -> None:
    """TRANSPOSE: Transpose, its axes in the IR's layout."""
    rank = len(writer.tensor(node.inputs[0]).shape)
    order = order_first([int(a) % rank for a in writer.constant_of(node.inputs[1])])
    writer.values[node.outputs[0]] = writer.transposed(writer.read(node.inputs[0]), order, node.name)


def concatenation(writer: Writer, node: Node) -> None:
    """CONCATENATION: Concat; inputs keep their own levels."""
    shape = writer.tensor(node.outputs[0]).shape
    axis = axis_first(node.attributes.integer("axis", 0), len(shape))
    values = [writer.read(t) for t in node.inputs]
    writer.write(node, writer.builder.add("Concat", node.name, values, shape_first(shape), axis=str(axis)))


def pad(writer: Writer, node: Node) -> None:
    """PAD, PADV2: Pad with a constant; zero is a level wherever levels are padded."""
    amounts = writer.constant_of(node.inputs[1])
    order = TO_FIRST if len(amounts) == 4 else range(len(amounts))
    begin, end = (
        writer.whole(f"{node.name}/{side}", [int(amounts[a][i]) for a in order])
        for i, side in enumerate(("begin", "end"))
    )
    given = writer.constant_of(node.inputs[2]).reshape(()) if len(node.inputs) > 2 else np.zeros((), np.float32)
    inputs = [writer.read(node.inputs[0]), begin, end, writer.reals(f"{node.name}/value", given)]
    output = shape_first(writer.tensor(node.outputs[0]).shape)
    writer.values[node.outputs[0]] = writer.builder.add("Pad", node.name, inputs, output, pad_mode="constant")


def quantize(writer: Writer, node: Node) -> None:
    """Quantize: FakeQuantize, whose second half every reader undoes. In a float graph nothing."""
    source, output = writer.tensor(node.inputs[0]), writer.tensor(node.outputs[0])
    value = writer.read(node.inputs[0])
    if output.dtype.is_integer:
        value = writer.fake_quantise(value, input_rule(node, output), output.name)
    elif source.dtype is not output.dtype:
        raise UnsupportedError(f"{source.dtype.value} to {output.dtype.value}; float32 stays float32")
    writer.values[node.outputs[0]] = value


def dequantize(writer: Writer, node: Node) -> None:
    """Dequantize: the same reals."""
    source = writer.tensor(node.inputs[0])
    if source.is_constant:
        raise UnsupportedError(f"constant '{source.name}' was not folded")
    writer.values[node.outputs[0]] = writer.read(node.inputs[0])


def fake_quantize(writer: Writer, node: Node) -> None:
    """FakeQuantize in one piece."""
    rule = writer.tensor(node.outputs[0]).quantisation
    if not isinstance(rule, FakeQuantize):
        raise UnsupportedError("states no levels and ranges")
    name = writer.tensor(node.outputs[0]).name
    writer.values[node.outputs[0]] = writer.fake_quantise(writer.read(node.inputs[0]), rule, name)

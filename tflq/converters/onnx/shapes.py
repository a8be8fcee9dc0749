"""Operators that move data: reshape, transpose, pad, concatenate."""

from __future__ import annotations

import numpy as np

from tflq.converters.onnx.writer import Writer, is_same_order
from tflq.converters.passes.layouts import TO_FIRST, axis_first, order_first, shape_first
from tflq.errors import UnsupportedError
from tflq.graph import Array, Node


def reshape(writer: Writer, node: Node) -> None:
    """RESHAPE, SQUEEZE, EXPAND_DIMS: Reshape in the model's own order of elements.

    An image that is flattened for fully connected layers only stays in the order (c, h, w): they permute their weights.
    """
    source, t = node.inputs[0], node.outputs[0]
    old, new = writer.tensor(source).shape, writer.tensor(t).shape
    if _is_flattened_for_products(writer, source, t):
        writer.flattened[t] = (old[1], old[2], old[3])
        value = writer.read(source)
    else:
        value = writer.read_plain(source)
    if len(new) != 4 or is_same_order(new):
        writer.write(t, "Reshape", [value, _shape(writer, t, shape_first(new))])
        return
    plain = writer.node("Reshape", [value, _shape(writer, t, new)], f"{writer.name(t)}_nhwc")
    writer.write(t, "Transpose", [plain], perm=TO_FIRST)


def flat_rows(writer: Writer, t: int, length: int) -> str:
    """Return a tensor as rows of a length: [rows, length], elements in the order that its reader expects."""
    shape = writer.tensor(t).shape
    if len(shape) == 2 and shape[1] == length:
        return writer.read(t)
    rows = int(np.prod(shape, dtype=np.int64)) // length
    return writer.node("Reshape", [writer.read_plain(t), _shape(writer, t, (rows, length))], f"{writer.name(t)}_rows")


def transpose(writer: Writer, node: Node) -> None:
    """TRANSPOSE: Transpose, its axes in ONNX's layout."""
    perm = order_first([int(a) for a in _constant(writer, node, 1)])
    writer.write(node.outputs[0], "Transpose", [writer.read(node.inputs[0])], perm=perm)


def concatenation(writer: Writer, node: Node) -> None:
    """CONCATENATION: Concat."""
    rank = len(writer.tensor(node.outputs[0]).shape)
    values = [_operand(writer, t) for t in node.inputs]
    writer.write(node.outputs[0], "Concat", values, axis=axis_first(node.attributes.integer("axis", 0), rank))


def pad(writer: Writer, node: Node) -> None:
    """PAD, PADV2: Pad with a constant."""
    amounts, name = _constant(writer, node, 1), writer.name(node.outputs[0])
    order = TO_FIRST if len(amounts) == 4 else range(len(amounts))
    pads = np.array([amounts[a][side] for side in (0, 1) for a in order], np.int64)
    inputs = [writer.read(node.inputs[0]), writer.constant(f"{name}_pads", pads)]
    if len(node.inputs) > 2:
        inputs.append(writer.read_constant(node.inputs[2], _constant(writer, node, 2).reshape(())))
    writer.write(node.outputs[0], "Pad", inputs, mode="constant")


def quantize(writer: Writer, node: Node) -> None:
    """QUANTIZE, DEQUANTIZE: the real value in the type of the output."""
    writer.alias(node.outputs[0], writer.read(node.inputs[0]))


def _operand(writer: Writer, t: int) -> str:
    data = writer.tensor(t).data
    if data is None:
        return writer.read(t)
    return writer.read_constant(t, data.transpose(TO_FIRST) if data.ndim == 4 else data)


def _is_flattened_for_products(writer: Writer, source: int, t: int) -> bool:
    graph = writer.graph
    old, new = writer.tensor(source).shape, writer.tensor(t).shape
    if len(old) != 4 or len(new) != 2 or is_same_order(old) or new[0] != old[0] or t in graph.outputs:
        return False
    readers = [graph.nodes[i] for i in graph.consumers().get(t, [])]
    products = [n for n in readers if n.operator == "fully_connected" and n.inputs[0] == t]
    return len(products) == len(readers) and all(writer.tensor(n.inputs[1]).shape[1] == new[1] for n in products)


def _shape(writer: Writer, t: int, shape: tuple[int, ...]) -> str:
    return writer.constant(f"{writer.name(t)}_shape", np.array(shape, np.int64))


def _constant(writer: Writer, node: Node, position: int) -> Array:
    data = writer.tensor(node.inputs[position]).data
    if data is None:
        raise UnsupportedError(f"{node.name}: input {position} is computed at run time; a constant is needed")
    return data

"""Multiply-accumulates of an operator."""

from __future__ import annotations

from math import prod

from tflq.errors import GraphError
from tflq.graph.graph import Graph, Node, Operands


def macs(graph: Graph, index: int) -> int:
    """Return the multiply-accumulates of node `index` for one sample; 0 for operators that have no weights to multiply.

    conv_2d, conv_3d:     N * output positions * C_out * filter positions * C_in / groups
    depthwise_conv_2d:    N * output positions * C_out * filter positions
    transpose_conv:       N * input positions * C_in * filter positions * C_out
    fully_connected:      rows * C_in * C_out
    batch_matmul:         output elements * the inner size

    Padded positions count, as they do in the figures that vendors publish.
    """
    rule = _RULES.get(graph.nodes[index].operator)
    if rule is None:
        return 0
    operands = graph.operands(index)
    try:
        return rule(operands, graph.nodes[index])
    except (GraphError, IndexError):  # a malformed operator: whoever runs it says so
        return 0


def precision(graph: Graph, index: int) -> str:
    """Return the types of what node `index` multiplies: "int8 x int4", input times weights."""
    operands = graph.operands(index)
    first, second = (2, 1) if graph.nodes[index].operator == "transpose_conv" else (0, 1)
    return f"{operands.input(first).dtype.value} x {operands.input(second).dtype.value}"


def _convolution(operands: Operands, _: Node) -> int:
    return operands.output().size * prod(operands.input(1).shape[1:])


def _convolution_3d(operands: Operands, _: Node) -> int:
    return operands.output().size * prod(operands.input(1).shape[:4])


def _depthwise(operands: Operands, _: Node) -> int:
    return operands.output().size * prod(operands.input(1).shape[1:3])


def _transposed(operands: Operands, _: Node) -> int:
    weights, source = operands.input(1), operands.input(2)
    return source.size * prod(weights.shape[:3])


def _dense(operands: Operands, _: Node) -> int:
    return operands.output().size * operands.input(1).shape[-1]


def _matrix_product(operands: Operands, node: Node) -> int:
    left = operands.input(0).shape
    return operands.output().size * left[-2 if node.attributes.boolean("adj_x", False) else -1]


_RULES = {
    "conv_2d": _convolution,
    "conv_3d": _convolution_3d,
    "depthwise_conv_2d": _depthwise,
    "transpose_conv": _transposed,
    "fully_connected": _dense,
    "batch_matmul": _matrix_product,
}

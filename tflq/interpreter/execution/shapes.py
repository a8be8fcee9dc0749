"""Shapes of results without computing them: for operators that cost time, and those that keep or broadcast shapes.

A file states a shape for every tensor, and converters write placeholders there: after SHAPE, STRIDED_SLICE, PACK,
RESHAPE, and between SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND. TFLite uses the stated shapes of inputs, constants and
variables only, and computes all others from the operators (docs/rules/tflite/index.md, shapes). So does `settle`; for
operators without a row here it runs the kernel on zeros.

Source: Prepare of each kernel in TFLite kernels/*.cc.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Node, Operands
from tflq.graph.operators import Trait, with_traits
from tflq.interpreter.operands.checks import constant_integers, lower_reduction, reduced_shape, resolve_axis
from tflq.interpreter.operands.movable import resized_shape
from tflq.interpreter.operands.products import check_shapes, require_product
from tflq.interpreter.operands.sliding_windows import window_of
from tflq.interpreter.operands.windows import pool_window, transposed_window

Shape = tuple[int, ...]
ShapeRule = Callable[[Node, Operands], Shape]
"""Shapes of the operands -> shape of the only output. Errors are those of the kernel's `lower`."""


def same_shape(node: Node, operands: Operands) -> Shape:  # noqa: ARG001
    """Return the shape of input 0."""
    return operands.input(0).shape


def broadcast_shape(node: Node, operands: Operands) -> Shape:  # noqa: ARG001
    """Return the shape to which both inputs broadcast."""
    return tuple(int(size) for size in np.broadcast_shapes(operands.input(0).shape, operands.input(1).shape))


def convolved_shape(node: Node, operands: Operands) -> Shape:
    """Return [N, OH, OW, O] of CONV_2D, weights [O, KH, KW, C/groups]."""
    return _convolved(node, operands, operands.input(1).shape[0])


def depthwise_shape(node: Node, operands: Operands) -> Shape:
    """Return [N, OH, OW, O] of DEPTHWISE_CONV_2D, weights [1, KH, KW, O]."""
    return _convolved(node, operands, operands.input(1).shape[3])


def transposed_shape(node: Node, operands: Operands) -> Shape:
    """Return [N, OH, OW, O] of TRANSPOSE_CONV: the value of input 0, checked against the window."""
    _, size = transposed_window(node, operands)
    return (operands.input(2).shape[0], *size, operands.input(1).shape[0])


def product_shape(node: Node, operands: Operands) -> Shape:
    """Return [rows, O] of FULLY_CONNECTED, or [..., O] with keep_num_dims; weights [O, K], rows = elements / K."""
    x, weights = operands.input(0), operands.input(1)
    if check_shapes(node, x, weights):
        return (*x.shape[:-1], weights.shape[0])
    return (x.size // weights.shape[1], weights.shape[0])


def matrices_shape(node: Node, operands: Operands) -> Shape:
    """Return [..., A, B] of BATCH_MATMUL."""
    x, y = operands.input(0).shape, operands.input(1).shape
    adj_x, adj_y, _ = require_product(node, operands)
    return (*np.broadcast_shapes(x[:-2], y[:-2]), x[-1 if adj_x else -2], y[-2 if adj_y else -1])


def pooled_shape(node: Node, operands: Operands) -> Shape:
    """Return [N, OH, OW, C] of a pool."""
    shape = operands.input(0).shape
    window, size = pool_window(node, operands)
    return (shape[0], *window.output_size(size), shape[3])


def joined_shape(node: Node, operands: Operands) -> Shape:
    """Return the shape of tensors that are joined along an axis and equal along all other axes."""
    shapes = [operands.input(i).shape for i in range(len(operands.inputs))]
    axis = resolve_axis(node.attributes.integer("axis", 0), len(shapes[0]))
    if len({(len(s), s[:axis], s[axis + 1 :]) for s in shapes}) > 1:
        raise GraphError(f"shapes {shapes} differ elsewhere than along axis {axis}")
    return (*shapes[0][:axis], sum(s[axis] for s in shapes), *shapes[0][axis + 1 :])


def tiled_shape(node: Node, operands: Operands) -> Shape:  # noqa: ARG001
    """Return the shape repeated along each axis by the count in input 1."""
    times = constant_integers(operands, 1).reshape(-1).tolist()
    return tuple(size * count for size, count in zip(operands.input(0).shape, times, strict=True))


def enlarged_shape(node: Node, operands: Operands) -> Shape:  # noqa: ARG001
    """Return [N, height, width, C] of a resized image [N, H, W, C]."""
    shape = operands.input(0).shape
    return (shape[0], *resized_shape(operands), shape[3])


def without_axes(node: Node, operands: Operands) -> Shape:
    """Return the shape without the axes that are reduced, or with 1 for each of them."""
    return reduced_shape(lower_reduction(node, operands), operands.input(0).shape)


def _convolved(node: Node, operands: Operands, outputs: int) -> Shape:
    (images, height, width, _), weights = operands.input(0).shape, operands.input(1).shape
    window = window_of(node.attributes, (height, width), (weights[1], weights[2]))
    return (images, *window.output_size((height, width)), outputs)


SHAPE_RULES: dict[str, ShapeRule] = {
    **dict.fromkeys(with_traits(Trait.SAME_SHAPE), same_shape),
    **dict.fromkeys(with_traits(Trait.PAIR), broadcast_shape),
    **dict.fromkeys(with_traits(Trait.POOL), pooled_shape),
    **dict.fromkeys(with_traits(Trait.RESIZE), enlarged_shape),
    "batch_matmul": matrices_shape,
    "concatenation": joined_shape,
    "conv_2d": convolved_shape,
    "depthwise_conv_2d": depthwise_shape,
    "fully_connected": product_shape,
    **dict.fromkeys(with_traits(Trait.REDUCTION), without_axes),
    "tile": tiled_shape,
    "transpose_conv": transposed_shape,
}

"""FULLY_CONNECTED (MatMul) on codes (filter.py)."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.graph import Array, Node, Operands
from tflq.interpreter.accumulate import MatrixProduct, accumulate_product, prepare_product
from tflq.interpreter.kernels.fully_connected_shapes import check_shapes, output_shape
from tflq.interpreter.kernels.openvino.filter import FilterIntegers, lower_filter


@dataclass(frozen=True, eq=False)
class ProductIntegers:
    """The numbers of one fully connected layer.

    Attributes:
        filter: weights [O, K], multipliers, bias, levels.
        prepared: the weights made ready for accumulation.
        keep: whether the output keeps the input's axes.
    """

    filter: FilterIntegers
    prepared: MatrixProduct
    keep: bool


def lower(node: Node, operands: Operands) -> ProductIntegers:
    """Decide the numbers of FULLY_CONNECTED.

    Raises:
        UnsupportedError: as `lower_filter`.
        GraphError: an input that does not fall into rows.
    """
    x = operands.input(0)
    keep = check_shapes(node, x, operands.input(1))
    found = lower_filter(node, operands, 0)
    return ProductIntegers(found, prepare_product(found.weights, max(-x.dtype.minimum, x.dtype.maximum)), keep)


def run(integers: ProductIntegers, x: Array, *_constants: Array) -> tuple[Array, ...]:
    """Run FULLY_CONNECTED: codes [S, *any] whose elements make rows of K -> codes or float32 [S, rows, O]."""
    weights = integers.filter.weights
    rows = x.reshape(x.shape[0], -1, weights.shape[1])
    y = integers.filter.finish(accumulate_product(integers.prepared, rows))
    return (y.reshape(output_shape(x.shape, weights.shape, integers.keep)),)

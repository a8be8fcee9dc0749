"""FULLY_CONNECTED (Gemm): one scale for all weights, one 32-bit multiplier, ties up (docs/tpu_mlir.md, 4)."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.graph import Array, Node, Operands
from tflq.interpreter.accumulate import MatrixProduct, accumulate_product, prepare_product
from tflq.interpreter.kernels.tpu_mlir.filter import FilterParams, input_magnitude, lower_filter
from tflq.interpreter.operands.fully_connected import check_shapes, output_shape


@dataclass(frozen=True, eq=False)
class ProductParams:
    """The integers of one fully connected layer.

    Attributes:
        filter: weights [O, K], bias, m and s.
        prepared: the weights made ready for accumulation.
        keep: whether the output keeps the input's axes.
    """

    filter: FilterParams
    prepared: MatrixProduct
    keep: bool


def lower(node: Node, operands: Operands) -> ProductParams:
    """Decide the integers of FULLY_CONNECTED.

    Raises:
        UnsupportedError: as `lower_filter`.
        GraphError: an input that does not fall into rows.
    """
    keep = check_shapes(node, operands.input(0), operands.input(1))
    found = lower_filter(node, operands, 0)
    return ProductParams(found, prepare_product(found.weights, input_magnitude(operands)), keep)


def run(params: ProductParams, x: Array, *_constants: Array) -> tuple[Array, ...]:
    """Run FULLY_CONNECTED: int8 or uint8 [S, *any] whose elements make rows of K -> codes [S, rows, O]."""
    weights = params.filter.weights
    rows = x.reshape(x.shape[0], -1, weights.shape[1])
    y = params.filter.finish(accumulate_product(params.prepared, rows))
    return (y.reshape(output_shape(x.shape, weights.shape, params.keep)),)

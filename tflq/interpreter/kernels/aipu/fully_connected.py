"""FullyConnected: x [B, K], weights [O, K] (docs/aipu.md, 3)."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.graph import Array, Node, Operands
from tflq.interpreter.accumulate import MatrixProduct, accumulate_product, prepare_product
from tflq.interpreter.kernels.aipu.filter import FilterParams, lower_filter
from tflq.interpreter.kernels.aipu.scales import magnitude_of


@dataclass(frozen=True, eq=False)
class ProductParams:
    """The integers of one fully connected layer.

    Attributes:
        filter: weights [O, K], bias, M and N.
        prepared: the weights packed for accumulation.
        shape: of the output.
    """

    filter: FilterParams
    prepared: MatrixProduct
    shape: tuple[int, ...]


def lower(node: Node, operands: Operands) -> ProductParams:
    """Decide the integers of FullyConnected; raises as `lower_filter`."""
    found = lower_filter(node, operands)
    prepared = prepare_product(found.weights, magnitude_of(operands.input(0)))
    return ProductParams(found, prepared, operands.output().shape)


def run(params: ProductParams, x: Array, *_constants: Array) -> tuple[Array, ...]:
    """Run FullyConnected: codes [S, B, ...] flattened to [S, B, K] -> codes [S, B, O]."""
    rows = x.reshape(x.shape[0], -1, params.filter.weights.shape[1])
    codes = params.filter.finish(accumulate_product(params.prepared, rows))
    return (codes.reshape(x.shape[0], *params.shape),)

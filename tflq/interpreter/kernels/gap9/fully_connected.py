"""FULLY_CONNECTED in GAP9's arithmetic (docs/gap9.md, 6)."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.graph import Array, Node, Operands
from tflq.interpreter.accumulate import MatrixProduct, accumulate_product, prepare_product
from tflq.interpreter.kernels.gap9.filter import FilterParams, finish, input_magnitude, lower_filter


@dataclass(frozen=True, eq=False)
class ProductParams:
    """The integers of one fully connected layer.

    Attributes:
        filter: weights [O, K], bias, M and N.
        prepared: the weights made ready for accumulation.
        shape: of the output.
    """

    filter: FilterParams
    prepared: MatrixProduct
    shape: tuple[int, ...]


def lower(node: Node, operands: Operands) -> ProductParams:  # noqa: ARG001
    """Decide the integers of FULLY_CONNECTED; raises as `lower_filter`."""
    found = lower_filter(operands, 0)
    return ProductParams(found, prepare_product(found.weights, input_magnitude(operands)), operands.output().shape)


def run(params: ProductParams, x: Array, *_constants: Array) -> tuple[Array, ...]:
    """Run FULLY_CONNECTED: codes [S, *any] whose elements make rows of K -> codes [S, *shape]."""
    rows = x.reshape(x.shape[0], -1, params.filter.weights.shape[1])
    y = finish(params.filter, accumulate_product(params.prepared, rows))
    return (y.reshape(x.shape[0], *params.shape),)

"""FULLY_CONNECTED in GAP9's arithmetic (docs/gap9.md, 6)."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.graph import Array, Node, Operands
from tflq.interpreter.accumulate import MatrixProduct, accumulate_product, prepare_product
from tflq.interpreter.kernels.gap9.filter import FilterIntegers, finish, input_magnitude, lower_filter


@dataclass(frozen=True, eq=False)
class ProductIntegers:
    """The integers of one fully connected layer.

    Attributes:
        filter: weights [O, K], bias, M and N.
        prepared: the weights made ready for accumulation.
        shape: of the output.
    """

    filter: FilterIntegers
    prepared: MatrixProduct
    shape: tuple[int, ...]


def lower(node: Node, operands: Operands) -> ProductIntegers:  # noqa: ARG001
    """Decide the integers of FULLY_CONNECTED; raises as `lower_filter`."""
    found = lower_filter(operands, 0)
    return ProductIntegers(found, prepare_product(found.weights, input_magnitude(operands)), operands.output().shape)


def run(integers: ProductIntegers, x: Array, *_constants: Array) -> tuple[Array, ...]:
    """Run FULLY_CONNECTED: codes [S, *any] whose elements make rows of K -> codes [S, *shape]."""
    rows = x.reshape(x.shape[0], -1, integers.filter.weights.shape[1])
    y = finish(integers.filter, accumulate_product(integers.prepared, rows))
    return (y.reshape(x.shape[0], *integers.shape),)

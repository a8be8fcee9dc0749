"""MUL in GAP9's arithmetic: int8 symmetric (docs/gap9.md, 10)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.gap9.mul_bias import MulBias, mul_bias
from tflq.interpreter.kernels.gap9.pairs import pair_table, run_pairs
from tflq.interpreter.kernels.gap9.rounding import norm
from tflq.interpreter.numerics.fixed_point import Integers


@dataclass(frozen=True, eq=False)
class ProductOfTensors:
    """The integers of one product.

    Attributes:
        mul_bias: M, N about S_a * S_b / S_y.
        minimum: smallest code.
        maximum: largest code.
        dtype: of the output.
        table: all pairs of 8-bit codes.
    """

    mul_bias: MulBias
    minimum: int
    maximum: int
    dtype: np.dtype[np.generic]
    table: Array | None = None

    def exact(self, first: Integers, second: Integers) -> Integers:
        """clip(norm(a * b * M, N))."""
        y = norm(first * second * self.mul_bias.multiplier[0], self.mul_bias.shift[0])
        return np.clip(y, self.minimum, self.maximum)


def lower(node: Node, operands: Operands) -> ProductOfTensors:  # noqa: ARG001
    """Decide the integers of MUL.

    Raises:
        UnsupportedError: a zero point other than 0, or a ratio of scales without M and N.
    """
    tensors, output = (operands.input(0), operands.input(1)), operands.output()
    for tensor in (*tensors, output):
        if int(tensor.affine.zero_point[0]):
            raise UnsupportedError(f"'{tensor.name}' has zero point {tensor.affine.zero_point[0]}; a product takes 0")
    a, b, y = (float(t.affine.scale[0]) for t in (*tensors, output))
    affine = output.affine
    params = ProductOfTensors(mul_bias(a * b / y), affine.minimum_code, affine.maximum_code, output.dtype.storage)
    return replace(params, table=pair_table(params.exact, *tensors, output))


def run(params: ProductOfTensors, first: Array, second: Array) -> tuple[Array, ...]:
    """Run MUL: codes [S or 1, *shape] twice, shapes broadcast -> codes [S, *shape]."""
    return (run_pairs(params.table, params.exact, first, second, params.dtype),)

"""Sigmoid and tanh of Q12 numbers by a table of 256 entries, giving Q15 (docs/gap9.md, 11)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, Operands
from tflq.interpreter.kernels.gap9.curve import curve_table, run_curve
from tflq.interpreter.kernels.gap9.mul_bias import MulBias, mul_bias
from tflq.interpreter.kernels.gap9.rounding import norm
from tflq.interpreter.numerics.fixed_point import Integers
from tflq.interpreter.numerics.lookup_tables import Table
from tflq.interpreter.numerics.sigmoid_table import SIGMOID_TABLE

Q12, Q15 = 2.0**-12, 2.0**-15
ALONE_SHIFT = 8
"""An int8 input is shifted left by this and read as Q12: as x / 16, whatever its scale says."""


def sigmoid_q15(x: Integers) -> Integers:
    """Sigmoid: k = (3|x|) >> 9, v = k >= 255 ? 65535 : T[k], result = (x > 0 ? v : 65536 - v) >> 1; no interpolation.

    Args:
        x: Q12.

    Returns:
        Q15, int64.
    """
    v = _entry(x, 9)
    return np.asarray(np.where(x > 0, v, 65536 - v) >> 1, np.int64)


def tanh_q15(x: Integers) -> Integers:
    """Hyperbolic tangent: k = (3|x|) >> 8, v as for sigmoid, result = x > 0 ? v - 32768 : 32768 - v."""
    v = _entry(x, 8)
    return np.asarray(np.where(x > 0, v - 32768, 32768 - v), np.int64)


def _entry(x: Integers, shift: int) -> Integers:
    k = (3 * np.abs(x)) >> shift
    return np.asarray(np.where(k >= 255, 65535, SIGMOID_TABLE[np.minimum(k, 255)]), np.int64)


@dataclass(frozen=True, eq=False)
class CurveParams:
    """The integers of one sigmoid or tanh.

    Attributes:
        is_tanh: which of the two.
        left_shift: 8 for int8 inputs, 0 for Q12.
        mul_bias: M, N about 2^-15 / S_y.
        zero_point: of the output.
        minimum: smallest code.
        maximum: largest code.
        dtype: of the output.
        table: for inputs of 8 bits.
    """

    is_tanh: bool
    left_shift: int
    mul_bias: MulBias
    zero_point: int
    minimum: int
    maximum: int
    dtype: np.dtype[np.generic]
    table: Table | None = None

    def exact(self, x: Integers) -> Integers:
        """clip(norm(curve(x << left_shift) * M, N) + Z_y)."""
        q15 = (tanh_q15 if self.is_tanh else sigmoid_q15)(x << self.left_shift)
        y = norm(q15 * self.mul_bias.multiplier[0], self.mul_bias.shift[0]) + self.zero_point
        return np.clip(y, self.minimum, self.maximum)


def lower_curve(operands: Operands, is_tanh: bool) -> CurveParams:
    """Decide the integers.

    Raises:
        UnsupportedError: an input with a zero point; an input of 32 bits that is not Q12.
    """
    x, output = operands.input(0), operands.output()
    wide = x.affine.bits == 32
    if int(x.affine.zero_point[0]) or (wide and float(x.affine.scale[0]) != Q12):
        raise UnsupportedError(f"input '{x.name}' must be symmetric, and 2^-12 its scale where it has 32 bits")
    y = output.affine
    params = CurveParams(
        is_tanh,
        0 if wide else ALONE_SHIFT,
        mul_bias(Q15 / float(y.scale[0])),
        int(y.zero_point[0]),
        y.minimum_code,
        y.maximum_code,
        output.dtype.storage,
    )
    return replace(params, table=curve_table(params.exact, x, output))


def run_sigmoid_tanh(params: CurveParams, x: Array) -> tuple[Array, ...]:
    """Run either: int32 (Q12) or int8 [S, *shape] -> codes [S, *shape]."""
    return (run_curve(params.table, params.exact, x, params.dtype),)

"""Add and Sub in GAP9's arithmetic: the operand of larger scale is brought to the other's (docs/gap9.md, 10)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Affine, Array, Operands
from tflq.interpreter.kernels.gap9.mul_bias import MulBias, mul_bias
from tflq.interpreter.kernels.gap9.pairs import pair_table, run_pairs
from tflq.interpreter.kernels.gap9.rounding import norm
from tflq.interpreter.numerics.fixed_point import Integers

_LARGEST_BIAS = 32767


@dataclass(frozen=True, eq=False)
class SumParams:
    """The integers of one addition or subtraction.

    Attributes:
        sign: +1, or -1 for Sub.
        scaled: index of the operand of larger scale, which is multiplied first; 0 if they are equal.
        input_mul_bias: M1, N1 about S_scaled / S_other.
        mul_bias: M2, N2 about S_other / S_y.
        bias: added at the end, from the zero points.
        minimum: smallest code.
        maximum: largest code.
        dtype: of the output.
        table: all pairs of 8-bit codes, None for wider ones.
    """

    sign: int
    scaled: int
    input_mul_bias: MulBias
    mul_bias: MulBias
    bias: int
    minimum: int
    maximum: int
    dtype: np.dtype[np.generic]
    table: Array | None = None

    def exact(self, first: Integers, second: Integers) -> Integers:
        """clip(norm((x_o + norm(x_s * M1, N1)) * M2, N2) + bias), the sign going with the second operand."""
        operands = [first, second]
        scaled, m1 = operands[self.scaled], self.input_mul_bias
        operands[self.scaled] = norm(scaled * m1.multiplier[0], m1.shift[0])
        total = operands[0] + self.sign * operands[1]
        y = norm(total * self.mul_bias.multiplier[0], self.mul_bias.shift[0]) + self.bias
        return np.clip(y, self.minimum, self.maximum)


def lower_sum(operands: Operands, sign: int, vendor_signs: bool = False) -> SumParams:
    """Decide the integers.

    bias = round(Z_y - (S_o / S_y) * (+-Z_o +- (S_s / S_o) * Z_s)), each sign that of its operand; round half to even.

    Args:
        operands: two inputs and the output, in GAP9's types.
        sign: of the second operand.
        vendor_signs: keep + on both zero points of a Sub, as the vendor's tool does (wrong for unsigned types).

    Raises:
        UnsupportedError: a bias beyond 16 bits, or a ratio of scales without M and N.
    """
    tensors = (operands.input(0), operands.input(1))
    types = tuple(t.affine for t in tensors)
    output = operands.output()
    y = output.affine
    scales = [float(t.scale[0]) for t in types]
    scaled = 1 if scales[1] > scales[0] else 0
    s_s, s_o, s_y = scales[scaled], scales[1 - scaled], float(y.scale[0])
    bias = _bias(types, y, scaled, 1 if vendor_signs else sign)
    params = SumParams(
        sign,
        scaled,
        mul_bias(s_s / s_o),
        mul_bias(s_o / s_y),
        bias,
        y.minimum_code,
        y.maximum_code,
        output.dtype.storage,
    )
    return replace(params, table=pair_table(params.exact, *tensors, output))


def run_sum(params: SumParams, first: Array, second: Array) -> tuple[Array, ...]:
    """Run Add or Sub: codes [S or 1, *shape] twice, shapes broadcast -> codes [S, *shape]."""
    return (run_pairs(params.table, params.exact, first, second, params.dtype),)


def _bias(types: tuple[Affine, ...], y: Affine, scaled: int, sign: int) -> int:
    zero_points = [int(t.zero_point[0]) for t in types]
    if not any(zero_points) and not int(y.zero_point[0]):
        return 0
    signs = (1, sign)
    other = 1 - scaled
    s_s, s_o, s_y = (float(a.scale[0]) for a in (types[scaled], types[other], y))
    shifted = signs[other] * zero_points[other] + (s_s / s_o) * (signs[scaled] * zero_points[scaled])
    bias = float(np.round(int(y.zero_point[0]) - (s_o / s_y) * shifted))
    if abs(bias) > _LARGEST_BIAS:
        raise UnsupportedError(
            f"the zero points add up to a bias of {bias:.0f}, 16 bits end at {_LARGEST_BIAS}: the scales of the "
            f"operands and the output differ too much ({s_s / s_o:.4g}, {s_o / s_y:.4g}); widen the range of the output"
        )
    return int(bias)

"""ln(x) of a fixed-point number, as LOG_SOFTMAX uses it (docs/fixed_point.md).

A value with n integer bits stands for raw * 2^(n - 31). Products are SRDHM: integer bits add up.
"""

from __future__ import annotations

import numpy as np

from tflq.interpreter.numerics.fixed_point import Integers, rounding_divide_by_pot, saturate, wrap_int32
from tflq.interpreter.numerics.fixed_point import saturating_rounding_doubling_high_mul as srdhm
from tflq.interpreter.numerics.gemmlowp import bit_length, one_over_one_plus_x
from tflq.interpreter.recording.primitive import primitive

_LN_2 = 1488522236
_FOURTH_ROOT_OF_HALF = 1805811301
_SQRT_HALF = 1518500250
_ALPHA_N = 117049297  # 11/240 * 2^(1/4)
_ALPHA_D = 127690142  # 1/20 * 2^(1/4)
_ALPHA_I = 1057819769  # 2 / 2^(1/4) - 2^(1/4)
_ALPHA_F = 638450708  # 1/4 * 2^(1/4)
_ACCUMULATOR_BITS = 6
_QUARTER = 1 << 23  # six integer bits


@primitive("logarithm", "ln({x}) with 5 integer bits; {x} has {integer_bits}")
def natural_logarithm(x: Integers, integer_bits: int) -> Integers:
    """Return ln(x) with 5 integer bits for x >= 1.

    x = r 2^e with r near 2^(-1/4), chosen from two ways to normalise; ln(r) is a rational function of
    r - 2^(-1/4), ln(x) = e ln(2) + ln(r).

    Args:
        x: raw, positive, of 31 bits.
        integer_bits: of x.

    Source: TFLite kernels/internal/common.h, log_x_for_x_greater_than_or_equal_to_1_impl.
    """
    r, exponent = _normalise(x, integer_bits)
    total = r + _FOURTH_ROOT_OF_HALF
    p = (total + 1) >> 1  # rounded half sum; the sum is positive
    q = wrap_int32(2 * (r - _FOURTH_ROOT_OF_HALF))
    square = srdhm(q, q)
    numerator = srdhm(q, r) + srdhm(srdhm(q, square), _ALPHA_N)
    denominator = srdhm(p, _ALPHA_I + q + srdhm(_ALPHA_D, square)) + srdhm(_ALPHA_F, q)
    quotient = srdhm(rounding_divide_by_pot(numerator, _ACCUMULATOR_BITS), one_over_one_plus_x(denominator))
    return saturate((srdhm(exponent, _LN_2) + quotient) << 1, 32)


def _normalise(x: Integers, integer_bits: int) -> tuple[Integers, Integers]:
    """Return r without integer bits and the exponent with six: one way keeps x, the other takes x sqrt(1/2)."""
    headroom = 32 - bit_length(x)
    first = saturate(srdhm(saturate(x << (headroom - 1), 32), _SQRT_HALF) << 1, 32)
    first_exponent = saturate(saturate((integer_bits - headroom) << 25, 32) + _QUARTER, 32)
    headroom = 31 - bit_length(srdhm(x, _SQRT_HALF))
    second = saturate(x << headroom, 32)
    second_exponent = saturate(saturate((integer_bits - headroom) << 25, 32) - _QUARTER, 32)
    return np.minimum(first, second), np.maximum(first_exponent, second_exponent)

"""Fixed-point exp and reciprocal of the gemmlowp library on int32 (docs/rules/fixed_point.md).

A value with n integer bits denotes raw * 2^(n - 31). Products are SRDHM: integer bits add up.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from tflq.arrays import Integers
from tflq.interpreter.numerics.fixed_point import INT32_MAX, rounding_divide_by_pot
from tflq.interpreter.numerics.fixed_point import saturating_rounding_doubling_high_mul as srdhm
from tflq.interpreter.recording.primitive import primitive

EXP_OF_MINUS_ONE_EIGHTH = 1895147668  # round(2^31 exp(-1/8)), and so on below
ONE_THIRD = 715827883
EXP_OF_MINUS_POWER_OF_TWO = {
    -2: 1672461947,
    -1: 1302514674,
    0: 790015084,
    1: 290630308,
    2: 39332535,
    3: 720401,
    4: 242,
}
_Number = TypeVar("_Number", Integers, int)
NEWTON_START = 1515870810  # 48/17, with two integer bits
NEWTON_SLOPE = -1010580540  # -32/17


@primitive("exponential", "exp({a}) with {integer_bits} integer bits")
def exp_on_negative_values(a: ArrayLike, integer_bits: int) -> Integers:
    """exp(a) for a <= 0, as a value without integer bits; exp(0) is 2^31 - 1.

    a is cut into a remainder in [-1/4, 0), with a Taylor polynomial of 4th order around -1/8 as its exp, and powers of
    two from 1/4 to 16, each of which multiplies by its own constant (SRDHM).

    Args:
        a: raw values with `integer_bits` integer bits, not positive.
        integer_bits: 0..5 (further bits would need a clamp at -32 that no caller has).

    Source: gemmlowp fixedpoint/fixedpoint.h, exp_on_negative_values.
    """
    value = np.asarray(a, np.int64)
    fraction_bits = 31 - integer_bits
    quarter = 1 << (fraction_bits - 2)
    remainder = (value & (quarter - 1)) - quarter
    result = _exp_between_minus_quarter_and_zero(remainder << integer_bits)
    powers = remainder - value
    for exponent, constant in EXP_OF_MINUS_POWER_OF_TWO.items():
        if integer_bits > exponent:
            has_power = (powers >> (fraction_bits + exponent)) & 1
            result = np.where(has_power, srdhm(result, constant), result)
    return np.where(value == 0, INT32_MAX, result)


@primitive("reciprocal", "1 / (1 + {a}), 3 Newton steps")
def one_over_one_plus_x(a: ArrayLike) -> Integers:
    """1 / (1 + a) for a in [0, 1), both without integer bits: three Newton steps from 48/17 - 32/17 d.

    Only the last step can saturate: x stays below 2.83 of 4, and its corrections below 1/17.

    Source: gemmlowp fixedpoint/fixedpoint.h, one_over_one_plus_x_for_x_in_0_1.
    """
    return np.asarray(np.minimum(_twice_one_over_one_plus_x(np.asarray(a, np.int64)), INT32_MAX), np.int64)


@primitive("high product", "SRDHM({a}, {b}) = ({a} * {b} + 2^30) >> 31")
def product(a: _Number, b: _Number | int) -> _Number:
    """SRDHM of int32 factors that are not both -2^31 and therefore never saturate: (a * b + 2^30) >> 31."""
    return (a * b + (1 << 30)) >> 31


@primitive("reciprocal", "1 / {x}: mantissa and bits over unit; {x} has {integer_bits} integer bits")
def reciprocal(x: ArrayLike, integer_bits: int) -> tuple[Integers, Integers]:
    """Write 1 / x as (mantissa, bits over unit): mantissa * 2^(-31 - bits over unit).

    x is shifted left until its top bit is the 32nd, which leaves 1 + fraction; the reciprocal of that is the mantissa.

    Args:
        x: positive values of an unsigned 32-bit register with `integer_bits` integer bits.
        integer_bits: Number of integer bits of x.

    Source: TFLite kernels/internal/common.h, GetReciprocal.
    """
    value = np.asarray(x, np.int64)
    headroom = 32 - bit_length(value)
    mantissa = one_over_one_plus_x((value << headroom) - (1 << 31))
    return mantissa, integer_bits - headroom


def reciprocal_of_one(x: int, integer_bits: int) -> tuple[int, int]:
    """`reciprocal` of one value: Python's integers are many times as fast as arrays of one."""
    headroom = 32 - x.bit_length()
    mantissa = min(_twice_one_over_one_plus_x((x << headroom) - (1 << 31)), INT32_MAX)
    return mantissa, integer_bits - headroom


@primitive("rounded", "RDBP({x}, {exponent}) of int16")
def rounding_divide_int16_by_pot(x: ArrayLike, exponent: int) -> Integers:
    """RDBP of int16: x / 2^exponent rounded half away from zero up to 15; from 16 on 1 for x >= 0 and -1 below.

    The mask 2^exponent - 1 does not fit int16 from 16 on and is cut to -1, so that the threshold becomes -1 or 0.

    Args:
        x: int16 values.
        exponent: 0..31.

    Source: gemmlowp fixedpoint/fixedpoint.h, RoundingDivideByPOT<std::int16_t>.
    """
    if exponent <= 15:
        return rounding_divide_by_pot(x, exponent)
    return np.asarray(np.where(np.asarray(x, np.int64) >= 0, 1, -1), np.int64)


_BIT_LENGTH = """
    int64_t bits = 0;
    while (x >> bits > 0) { bits += 1; }
    return bits;
"""


@primitive("bits", "bit length of {x}", body=_BIT_LENGTH)
def bit_length(x: Integers) -> Integers:
    """Number of bits of 0 <= x < 2^53; 0 for 0."""
    return np.frexp(x.astype(np.float64))[1].astype(np.int64)


def _twice_one_over_one_plus_x(a: _Number) -> _Number:
    """The Newton steps of `one_over_one_plus_x`; their result has one integer bit and is doubled without saturation."""
    half_denominator = (a + (1 << 31)) >> 1  # rounded half of a + (2^31 - 1)
    x = product(half_denominator, NEWTON_SLOPE) + NEWTON_START
    for _ in range(3):
        rest = (1 << 29) - product(half_denominator, x)
        x = x + (product(x, rest) << 2)
    return x << 1


def _exp_between_minus_quarter_and_zero(a: Integers) -> Integers:
    x = a + (1 << 28)
    x2 = srdhm(x, x)
    x3 = srdhm(x2, x)
    x4 = srdhm(x2, x2)
    cubic = srdhm(rounding_divide_by_pot(x4, 2) + x3, ONE_THIRD) + x2
    polynomial = x + rounding_divide_by_pot(cubic, 1)
    return EXP_OF_MINUS_ONE_EIGHTH + srdhm(EXP_OF_MINUS_ONE_EIGHTH, polynomial)

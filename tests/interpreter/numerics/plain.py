"""Fixed-point primitives once more, in Python's own integers and by the letter of the C code.

Source: docs/rules/fixed_point.md.

The kernels have closed forms of their own for whole arrays; test_plain.py holds each to its definition here.
"""

from __future__ import annotations

import math
from fractions import Fraction

INT32_MAX = (1 << 31) - 1
INT32_MIN = -(1 << 31)
_EXPONENTIALS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
"""round(2^31 exp(-2^k)), k = -2..4."""


def wrap32(x: int) -> int:
    """The low 32 bits as two's complement."""
    return (x + (1 << 31)) % (1 << 32) - (1 << 31)


def saturated(x: int, bits: int) -> int:
    """The nearest signed integer of `bits` bits."""
    return min(max(x, -(1 << (bits - 1))), (1 << (bits - 1)) - 1)


def truncated(p: int, q: int) -> int:
    """Return p / q cut toward zero, as C divides."""
    return abs(p) // q if p >= 0 else -(abs(p) // q)


def high_mul(a: int, b: int) -> int:
    """SRDHM of int32. Source: gemmlowp fixedpoint/fixedpoint.h, SaturatingRoundingDoublingHighMul."""
    if a == b == INT32_MIN:
        return INT32_MAX
    product = a * b
    nudge = 1 << 30 if product >= 0 else 1 - (1 << 30)
    return truncated(product + nudge, 1 << 31)


def high_mul_16(a: int, b: int) -> int:
    """SRDHM of int16, as `high_mul`."""
    if a == b == -(1 << 15):
        return (1 << 15) - 1
    product = a * b
    return truncated(product + (1 << 14 if product >= 0 else 1 - (1 << 14)), 1 << 15)


def divide_by_pot(x: int, exponent: int) -> int:
    """RDBP. Source: gemmlowp fixedpoint/fixedpoint.h, RoundingDivideByPOT."""
    mask = (1 << exponent) - 1
    threshold = (mask >> 1) + (1 if x < 0 else 0)
    return (x >> exponent) + (1 if (x & mask) > threshold else 0)


def multiplied(x: int, multiplier: int, shift: int) -> int:
    """MBQ: left shift, doubling high product, rounding right shift. Source: TFLite kernels/internal/common.cc."""
    return divide_by_pot(high_mul(wrap32(x << max(shift, 0)), multiplier), max(-shift, 0))


def multiplied_once(x: int, multiplier: int, shift: int) -> int:
    """MBQ64: a multiplier of 15 bits, rounded once, half up. Source: TFLite kernels/internal/common.cc."""
    short = (multiplier + (1 << 15)) >> 16 if multiplier < 0x7FFF0000 else 0x7FFF
    right = 15 - shift
    return wrap32((x * short + (1 << (right - 1))) >> right)


def shift_half_up(x: int, bits: int) -> int:
    """norm(x, n) = n == 0 ? x : (x + 2^(n-1)) >> n; n < 0 shifts to the left."""
    return x << -bits if bits <= 0 else (x + (1 << (bits - 1))) >> bits


def shift_half_away(x: int, bits: int) -> int:
    """As `shift_half_up`, of the magnitude."""
    return shift_half_up(abs(x), bits) * (1 if x >= 0 else -1)


def divide_by_pot_x86(x: int, exponent: int) -> int:
    """RDBP of int32 with a mask of int32, for any exponent, as x86 shifts: 64 bits mod 64, 32 bits mod 32."""
    mask = wrap32((1 << (exponent % 64)) - 1)
    return (x >> (exponent % 32)) + (1 if (x & mask) > (mask >> 1) + (1 if x < 0 else 0) else 0)


def scaled(x: int, m: int, n: int) -> int:
    """RNE(x * m * 2^-n): nearest, ties to even."""
    return round(Fraction(x * m) / Fraction(2) ** n)


def exp_q15(x: int) -> int:
    """exp(x / 2^15) * 2^15 for x <= 0, by a series of 8 terms and a table of whole powers (docs/targets/gap9.md)."""
    whole, f = divmod(-x, 1 << 15)
    if x == 0 or whole >= 11:
        return 1 << 15 if x == 0 else 0
    if f >= 1 << 14:
        whole, f = whole + 1, f - (1 << 15)
    terms = [32767, *(math.floor((1 << 15) / math.factorial(k) + 0.5) for k in range(2, 9))]
    power, series = f, 0
    for term in terms:
        series += power * term
        power = shift_half_up(power * f, 15)
    small = shift_half_up(series, 15) + (1 << 15) - 1
    over = math.floor((1 << 15) * (math.e**whole - math.floor(math.e**whole)) + 0.5)
    total = shift_half_up(small * over, 15) + small * math.floor(math.e**whole)
    return (0x7FFFFFFF // max(total, 1)) >> 1


def round_half_away(x: float) -> int:
    """Nearest whole number, ties away from zero."""
    whole = math.trunc(x)
    return whole + (1 if x > 0 else -1) if abs(x - whole) >= 0.5 else whole


def exponential(a: int, integer_bits: int) -> int:
    """exp(a) of a <= 0. Source: gemmlowp fixedpoint/fixedpoint.h, exp_on_negative_values."""
    if a == 0:
        return INT32_MAX
    fraction_bits = 31 - integer_bits
    quarter = 1 << (fraction_bits - 2)
    remainder = (a & (quarter - 1)) - quarter
    result = _small_exponential(remainder << integer_bits)
    powers = remainder - a
    for k, constant in enumerate(_EXPONENTIALS, -2):
        if integer_bits > k and powers >> (fraction_bits + k) & 1:
            result = high_mul(result, constant)
    return result


def _small_exponential(a: int) -> int:
    """Return exp on [-1/4, 0): a Taylor polynomial of 4th order around -1/8."""
    x = a + (1 << 28)
    x2 = high_mul(x, x)
    x3 = high_mul(x2, x)
    x4 = high_mul(x2, x2)
    cubic = high_mul(divide_by_pot(x4, 2) + x3, 715827883) + x2
    return 1895147668 + high_mul(1895147668, x + divide_by_pot(cubic, 1))


def reciprocal(a: int) -> int:
    """1 / (1 + a), as gemmlowp's one_over_one_plus_x_for_x_in_0_1."""
    half_denominator = truncated(a + INT32_MAX + 1, 2)
    x = 1515870810 + high_mul(half_denominator, -1010580540)
    for _ in range(3):
        rest = (1 << 29) - high_mul(half_denominator, x)
        x += high_mul(x, rest) << 2
    return min(x << 1, INT32_MAX)

"""Functions of fixed-point numbers with 12 to 16 fractional bits, as GAP9's expressions have them.

Source: docs/rules/gap9/expressions.md.

All are integer arithmetic on 32 bits with arithmetic shifts: polynomials over a normalized argument, small tables of
powers, Newton steps. Values live in int64; if 32 bits wrap, the function states it.
"""

from __future__ import annotations

from math import e, factorial

import numpy as np
from numpy.typing import ArrayLike

from tflq.arrays import Integers
from tflq.interpreter.numerics.fixed_point import norm, wrap_int32
from tflq.interpreter.numerics.gemmlowp import bit_length
from tflq.interpreter.numerics.integer_functions import SIGMOID_TABLE
from tflq.interpreter.recording.primitive import entries, primitive

ONE = 1 << 15
_U32 = (1 << 32) - 1
_LARGEST_EXP = (1 << 27) - 1
_EXP_TERMS = (32767, *(int(np.floor(ONE / factorial(k) + 0.5)) for k in range(2, 9)))
_WHOLE_POWERS = 11
_WHOLE = np.array([int(np.floor(e**i)) for i in range(_WHOLE_POWERS + 1)], np.int64)
_FRACTION = np.array([int(np.floor(ONE * (e**i - np.floor(e**i)) + 0.5)) for i in range(_WHOLE_POWERS + 1)], np.int64)
_SQRT_TERMS = (47674, -44070, 36268, -17580, 3674)
_SQRT_POWERS = np.array([int(np.floor(2.0 ** (7.5 + j / 2) + 0.5)) for j in range(32)], np.int64)
_LOG_TERMS = (32739, -16055, 9361, -4360, 1028)
_LOG_2 = 22713
_NO_LOG = -(1 << 31)
# fmt: off
_INVERSE_ROOTS = np.array(
    [
        4195081978, 3999987438, 3857709797, 3673324249, 3538941648, 3364925124, 3238225595, 3114736306,
        3034197676, 2915991203, 2800923290, 2725881492, 2615891595, 2544223877, 2439185020, 2370818678,
        2303729264, 2237913706, 2173355620, 2110062174, 2048008792, 1987165778, 1927563852, 1869150790,
        1840392771, 1783783997, 1728322103, 1701025332, 1647312430, 1620884011, 1568898597, 1543306786,
        1492993564, 1468237337, 1443762710, 1395657232, 1372007949, 1348606474, 1302626820, 1280060929,
        1257736702, 1235651067, 1213862392, 1192294901, 1171009010, 1149980143, 1108674025, 1088380390,
        1068352995, 1048568288, 1029032413, 1029036509, 1009730010, 971889108, 971882964, 953319889,
        934994382, 916898251, 899012040, 881390021, 881393093, 864009666, 846847423, 829901244,
        813183417, 813201849, 796721590, 780459443, 764413360, 764417456, 748601773, 732996010,
        733017514, 717624743, 702468516, 702466468, 687521185, 672786846, 672787870, 658259355,
        658257307, 643947928, 629854613, 629862805, 615977362, 615952786, 602277263, 588779916,
        588804492, 575512969, 575527305, 562433414, 562439558, 549556611, 549564803, 536876416,
    ],
    np.int64,
)
# fmt: on


@primitive("exponential", "exp({x} / 2^15) * 2^15")
def exp_q15(x: ArrayLike) -> Integers:
    """exp(x / 2^15) * 2^15, with 0 -> 32768.

    |x| = i + f / 2^15 with f in [-2^14, 2^14); exp(f) by its series to the 8th term in Q15, exp(i) from a table of 12
    entries. Of a negative x the reciprocal, (0x7FFFFFFF // E) >> 1. x >= 11 results in 2^27 - 1, x <= -11 in 0.

    Args:
        x: int32 values, Q15.

    Returns:
        int64 in [0, 2^31).
    """
    value = np.asarray(x, np.int64)
    magnitude = np.abs(value)
    whole, f = magnitude >> 15, magnitude & (ONE - 1)
    far = whole >= _WHOLE_POWERS
    upper = f >= ONE // 2
    f = np.where(upper, f - ONE, f)
    index = np.minimum(np.where(upper, whole + 1, whole), _WHOLE_POWERS)
    small = norm(_series(f, f, _EXP_TERMS), 15) + (ONE - 1)
    power = norm(small * entries(_FRACTION, index), 15) + small * entries(_WHOLE, index)
    positive = np.where(far, _LARGEST_EXP, power)
    negative = np.where(far, 0, (0x7FFFFFFF // np.maximum(power, 1)) >> 1)
    return np.asarray(np.where(value == 0, ONE, np.where(value > 0, positive, negative)), np.int64)


def _series(first: Integers, factor: Integers, terms: tuple[int, ...]) -> Integers:
    """sum_k z_k * C_k with z_1 = first, z_{k+1} = norm(z_k * factor, 15)."""
    total = np.zeros_like(first)
    power = first
    for term in terms:
        total = total + power * term
        power = norm(power * factor, 15)
    return total


@primitive("square root", "sqrt({x} / 2^15) * 2^15")
def sqrt_q15(x: ArrayLike) -> Integers:
    """sqrt(x / 2^15) * 2^15; 0 for x <= 0.

    x is normalized to y in [2^14, 2^15) by e = 31 - bit length; r = (sum_k z_k K_k >> 15) + 6801 with z_1 = y,
    z_{k+1} = z_k y >> 15; r times 2^((16 - e) / 2) by a table of rnd(2^(7.5 + j / 2)).

    Args:
        x: int32 values, Q15.
    """
    value = np.maximum(np.asarray(x, np.int64), 1)
    left = 31 - bit_length(value)
    y = (value << left) >> 16
    r = (_cut_series(y, y, _SQRT_TERMS) >> 15) + 6801
    power = entries(_SQRT_POWERS, 31 - left)
    high = (r * power) >> 15
    low = ((r >> np.maximum(12 - left, 0)) * power) >> (3 + np.minimum(left, 12))
    found = np.where(left == 16, r, np.where(left >= 12, high, low))
    return np.asarray(np.where(np.asarray(x, np.int64) <= 0, 0, found & _U32), np.int64)


def _cut_series(first: Integers, factor: Integers, terms: tuple[int, ...]) -> Integers:
    """As `_series`, products cut by >> 15; z_2 is first * first."""
    total, power = first * terms[0], (first * first) >> 15
    for term in terms[1:]:
        total = total + power * term
        power = (power * factor) >> 15
    return total


@primitive("logarithm", "ln({x} / 2^15) * 2^15")
def log_q15(x: ArrayLike) -> Integers:
    """ln(x / 2^15) * 2^15; -2^31 for x <= 0.

    e = 31 - bit length; y = (x << e >> 15) - 2^15; (sum_k z_k K_k >> 15) + 22713 (15 - e) with z_1 = y,
    z_{k+1} = z_k y >> 15.

    Args:
        x: int32 values, Q15.
    """
    value = np.maximum(np.asarray(x, np.int64), 1)
    left = 31 - bit_length(value)
    y = ((value << left) >> 15) - ONE
    found = (_cut_series(y, y, _LOG_TERMS) >> 15) + _LOG_2 * (15 - left)
    return np.asarray(np.where(np.asarray(x, np.int64) <= 0, _NO_LOG, found), np.int64)


@primitive("power", "({x} / 2^15) ^ ({exponent} / 2^15) * 2^15, logarithms from {least}")
def pow_q15(x: ArrayLike, exponent: int, least: int = _NO_LOG) -> Integers:
    """(x / 2^15)^(q / 2^15) * 2^15 = exp(norm(q * max(ln x, least), 15)); 0 for x = 0.

    Args:
        x: int32 values, Q15; negative ones result in exp of the least logarithm.
        exponent: q, Q15, 1..32767.
        least: Lower limit of the logarithm, Q15. `least_logarithm` is the tool's.
    """
    value = np.asarray(x, np.int64)
    logarithm = np.clip(log_q15(value), least, -1 - least)
    return np.asarray(np.where(value == 0, 0, exp_q15(norm(exponent * logarithm, 15))), np.int64)


def least_logarithm(exponent: int) -> int:
    """Return -2^(31 - bit length of q): to it NNTool cuts logarithms before it multiplies them by q."""
    return -(1 << (31 - exponent.bit_length()))


@primitive("inverse square root", "2^24 / sqrt({x})")
def rsqrt_q16(x: ArrayLike) -> Integers:
    """1 / sqrt(x / 2^16) * 2^16, by a table of 96 first guesses and one Newton step; 0 counts as 1.

    m = leading zeros of x, rounded down to even; y = x << m; t = table[(y >> 25) - 32]; hi(a, b) = a b >> 32;
    r = (t << 22) - hi(t, y); g = 0x30000000 - hi(r, hi(r, y)); r = hi(r, g); ((r >> (18 - m / 2)) + 1) >> 1.

    Args:
        x: int32 values, read as unsigned; Q16.
    """
    value = np.maximum(np.asarray(x, np.int64) & _U32, 1)
    left = (32 - bit_length(value)) & ~1
    y = (value << left) & _U32
    table = entries(_INVERSE_ROOTS, (y >> 25) - 32)
    r = ((table << 22) - _high(table, y)) & _U32
    g = (0x30000000 - _high(r, _high(r, y))) & _U32
    r = _high(r, g)
    return np.asarray(((r >> (18 - (left >> 1))) + 1) >> 1, np.int64)


def _high(a: Integers, b: Integers) -> Integers:
    """A * b >> 32 of unsigned 32-bit numbers, without leaving 64 bits."""
    return np.asarray((a * (b >> 16) + ((a * (b & 0xFFFF)) >> 16)) >> 16, np.int64)


@primitive("square", "{x}^2 / 2^15, half up")
def square_q15(x: ArrayLike) -> Integers:
    """norm(x * x, 15); the product wraps in int32.

    Args:
        x: int32 values, Q15.
    """
    value = np.asarray(x, np.int64)
    return norm(wrap_int32(value * value), 15)


@primitive("sine", "sin(2 pi {x} / 2^15) * 2^12")
def sin_q15(x: ArrayLike) -> Integers:
    """sin(2 pi x / 2^15) * 2^12, a polynomial of the 5th order over a quarter turn, modulo 2^32.

    Args:
        x: int16 values, 2^15 = a full turn.

    Returns:
        int64 in [-4096, 4096].
    """
    turned = _int16(np.asarray(x, np.int64) << 1)
    folded = np.where((turned >> 14) & 1, _int16(-ONE - turned), turned)
    b = (folded & (ONE - 1)) >> 1
    y = (292421 * b) >> 13
    y = (2746362156 - (((b * y) & _U32) >> 3)) & _U32
    y = (b * (y >> 13)) & _U32
    y = (b * (y >> 13)) & _U32
    y = (3370945099 - (y >> 1)) & _U32
    y = (b * (y >> 13)) & _U32
    y = _int16((y + (1 << 18)) >> 19)
    return np.asarray(np.where(turned < 0, -y, y), np.int64)


def cos_q15(x: ArrayLike) -> Integers:
    """cos(2 pi x / 2^15) * 2^12 = sin_q15(x + a quarter turn, in int16)."""
    return sin_q15(_int16(np.asarray(x, np.int64) + (ONE >> 2)))


def _int16(x: Integers) -> Integers:
    return ((x + ONE) & 0xFFFF) - ONE


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
    return np.asarray(np.where(k >= 255, 65535, entries(SIGMOID_TABLE, np.minimum(k, 255))), np.int64)

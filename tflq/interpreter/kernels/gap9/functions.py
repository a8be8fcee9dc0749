"""exp(x), sigmoid and tanh of fixed-point numbers, giving 15 fractional bits (docs/gap9.md, 11).

The integer softmax takes exp; sigmoid and tanh are a table of 256 entries over Q12.
"""

from __future__ import annotations

from math import e, factorial

import numpy as np
from numpy.typing import ArrayLike

from tflq.interpreter.kernels.gap9.rounding import Integers, norm
from tflq.interpreter.numerics.sigmoid_table import SIGMOID_TABLE
from tflq.interpreter.recording.primitive import primitive

ONE = 1 << 15
_TERMS = (32767, *(int(np.floor(ONE / factorial(k) + 0.5)) for k in range(2, 9)))
_LARGEST = 11
_WHOLE = np.array([int(np.floor(e**i)) for i in range(_LARGEST + 1)], np.int64)
_FRACTION = np.array([int(np.floor(ONE * (e**i - np.floor(e**i)) + 0.5)) for i in range(_LARGEST + 1)], np.int64)


@primitive("exponential", "exp({x} / 2^15) * 2^15")
def exp_q15(x: ArrayLike) -> Integers:
    """exp(x / 2^15) * 2^15 for x <= 0, with 0 -> 32768.

    |x| = i + f / 2^15 with f in (-2^14, 2^14]; exp(f) by its series to the 8th term in Q15, exp(i) from a table of
    12 entries; the result is the reciprocal, (0x7FFFFFFF // E) >> 1. |x| >= 11 gives 0.

    Args:
        x: int64, at most 0, Q15.

    Returns:
        int64 in [0, 32768].
    """
    value = -np.asarray(x, np.int64)
    whole, f = value >> 15, value & (ONE - 1)
    far = whole >= _LARGEST
    upper = f >= ONE // 2
    f = np.where(upper, f - ONE, f)
    whole = np.where(upper, whole + 1, whole)
    small = norm(_series(f), 15) + (ONE - 1)
    index = np.minimum(whole, _LARGEST)
    power = norm(small * _FRACTION[index], 15) + small * _WHOLE[index]
    result = (0x7FFFFFFF // np.maximum(power, 1)) >> 1
    return np.where(value == 0, ONE, np.where(far, 0, result)).astype(np.int64)


def _series(f: Integers) -> Integers:
    """sum_k z_k * C_k with z_1 = f, z_{k+1} = norm(z_k * f, 15), C_1 = 32767, C_k = rnd(2^15 / k!)."""
    total = np.zeros_like(f)
    power = f
    for term in _TERMS:
        total = total + power * term
        power = norm(power * f, 15)
    return total


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

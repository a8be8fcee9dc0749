"""T[k] = min{acc: F(acc) >= k}, the first accumulator at which a rule F reaches each of its quantized values.

From a guess that is checked against the rule on both sides of every threshold, or by bisection. For rules of a product
and a shift the guess is a closed form, which solves F(acc) >= k for acc in integers, without rounding: it is never
corrected.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tflq.arrays import Doubles, Integers

Exact = Callable[[Integers], Integers]
"""The integer rule: accumulators int64[..., O] -> quantized values int64[..., O]; the last axis is the channel."""

Reach = Callable[[Integers], Integers]
"""A closed form: quantized values int64[K, 1] -> T, int64[K, O], also beyond the range of accumulators."""

LARGEST_SHIFT = 48
"""Shifts up to it leave room for quantized values of 14 bits in `of_rounded_shift`."""
NEVER = np.int64(1) << 53
"""No accumulator is so large."""
_WORD = np.int64(1) << 31


def of_product(bound: Integers, multiplier: Integers) -> Integers:
    """Return the smallest x with x * multiplier >= bound: ceil(bound / multiplier); multipliers are 0 or more."""
    quotient: Integers = -(-bound // np.maximum(multiplier, 1))
    if np.all(multiplier):
        return quotient
    return np.where(multiplier > 0, quotient, np.where(bound <= 0, -NEVER, NEVER))


def of_rounded_shift(codes: Integers, multiplier: Integers, shift: Integers, ties_to_even: bool = False) -> Integers:
    """Return the smallest x with round(x * multiplier * 2^-shift) >= code; ties are rounded up, or to even.

    x * multiplier >= code * 2^N - floor(2^N / 2); one more if a tie is rounded to the even number below an odd code.

    Args:
        codes: integers [K, 1] of at most 14 bits.
        multiplier: [O], 0 or more.
        shift: [O], N in 0..LARGEST_SHIFT.
        ties_to_even: True to round ties to even.
    """
    unit = np.int64(1) << shift
    bound = codes * unit - (unit >> 1)
    return of_product(bound + ((codes & 1) * (shift > 0) if ties_to_even else 0), multiplier)


def of_quantized_multiplier(codes: Integers, multiplier: Integers, shift: Integers) -> Integers:
    """Return the smallest x with MBQ(x, multiplier, shift) >= code, while no left shift wraps.

    RDBP(h, e) >= j is h >= H = j * 2^e - floor(2^e / 2), one more for j <= 0 < e, because ties round away from zero.
    SRDHM(a, m) >= H is a * m >= H * 2^31 - 2^30, and x << s >= A is x >= ceil(A / 2^s).

    Args:
        codes: integers [K, 1] of at most 14 bits: quantized values less their zero point.
        multiplier: [O], 0 or in [2^30, 2^31).
        shift: [O], from -31.
    """
    right, left = np.maximum(-shift, 0), np.minimum(np.maximum(shift, 0), 31)
    unit = np.int64(1) << right
    high = codes * unit - (unit >> 1) + ((codes <= 0) & (right > 0))
    high = np.clip(high, -_WORD, _WORD)  # beyond it no int32 reaches it, or all do
    least = of_product((high << 31) - (_WORD >> 1), multiplier)
    return -(-least >> left) if np.any(left) else least


def find_thresholds(exact: Exact, codes: Integers, guess: Doubles, lower: Integers, upper: Integers) -> Integers:
    """Return T[k, o] in [lower, upper + 1], the end if there is none, from the rule itself.

    Args:
        exact: nondecreasing on [lower, upper].
        codes: [K, 1], quantized values.
        guess: [K, O], about T; only speed depends on its being close.
        lower: [O], smallest accumulator.
        upper: [O], largest accumulator.
    """
    t = np.clip(guess, lower.astype(np.float64), upper.astype(np.float64) + 1).astype(np.int64)
    for _ in range(3):
        too_low = (t <= upper) & (exact(np.minimum(t, upper)) < codes)
        too_high = (t > lower) & (exact(np.maximum(t - 1, lower)) >= codes)
        if not np.any(too_low | too_high):
            return t
        t = t + too_low - (too_high & ~too_low)
    return _bisect(exact, codes, lower, upper)


def _bisect(exact: Exact, codes: Integers, lower: Integers, upper: Integers) -> Integers:
    shape = (codes.shape[0], lower.shape[0])
    low: Integers = np.broadcast_to(lower, shape).copy()
    high: Integers = np.broadcast_to(upper + 1, shape).copy()
    while np.any(low < high):
        middle = low + (high - low) // 2  # below high <= upper + 1 wherever low < high
        reached: NDArray[np.bool_] = (exact(np.minimum(middle, upper)) >= codes) & (middle <= upper)
        open_ = low < high
        high = np.where(open_ & reached, middle, high)
        low = np.where(open_ & ~reached, middle + 1, low)
    return low

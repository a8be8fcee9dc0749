"""Step functions of one float32 as a table: the rule's own results, looked up by the leading bits of the number.

Numbers that share sign, exponent and some bits of the fraction form a bucket. Within one, a nondecreasing function of
float32 that changes at most once is two values and the first number of the second; both ends of every bucket are
computed by the function itself, and if they differ, bisection by the function locates the change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.arrays import Singles

Words = NDArray[np.uint32]
Function = Callable[[Singles], Singles]

FRACTIONS = (5, 6, 7, 8)
"""Bits of the fraction that tell buckets apart; the first that suffices is taken."""
_BLOCK = 1 << 15
_FRACTION, _EXPONENT = 23, np.uint32(0x7F80_0000)


@dataclass(frozen=True, eq=False)
class FloatSteps:
    """A step function of finite numbers and NaN.

    Attributes:
        shift: number of low bits that do not distinguish buckets.
        changes: uint32[B], bits of the first number of a bucket's second value.
        values: float32[2 * B], both values of each bucket.
    """

    shift: np.uint32
    changes: Words
    values: Singles

    def apply(self, x: Singles) -> Singles:
        """Return the function of each number: float32[*shape] -> float32[*shape]."""
        bits = np.ascontiguousarray(x).view(np.uint32).reshape(-1)
        result = np.empty(bits.size, np.float32)
        for start in range(0, bits.size, _BLOCK):
            part = bits[start : start + _BLOCK]
            bucket = (part >> self.shift).astype(np.intp)
            second = part >= self.changes.take(bucket)
            self.values.take(2 * bucket + second, out=result[start : start + _BLOCK], mode="clip")
        return result.reshape(x.shape)


def tabulate(function: Function) -> FloatSteps | None:
    """Return the table of a function, or None if buckets change more than once.

    Args:
        function: elementwise; nondecreasing on finite numbers, by the caller's promise; with one value for NaN. It is
            not called with infinity, and the table must not be.
    """
    nan = function(np.array([np.nan], np.float32))
    for bits in FRACTIONS:
        shift = np.uint32(_FRACTION - bits)
        first: Words = np.arange(1 << (9 + bits), dtype=np.uint32) << shift
        last: Words = first + ((np.uint32(1) << shift) - np.uint32(1))
        finite = (first & _EXPONENT) != _EXPONENT
        values = np.broadcast_to(nan, (first.size, 2)).copy()
        values[finite, 0], values[finite, 1] = _of(function, first[finite]), _of(function, last[finite])
        parted = np.flatnonzero(values[:, 0] != values[:, 1])
        changes = _changes(function, first[parted], last[parted], values[parted])
        if changes is not None:
            first[parted] = changes
            return FloatSteps(shift, first, values.reshape(-1))
    return None


def _changes(function: Function, low: Words, high: Words, values: Singles) -> Words | None:
    """Return the first number of the second value in (low, high]; None if there is a third value in between."""
    while np.any(high - low > 1):
        middle = low + (high - low) // 2
        found = _of(function, middle)
        is_first, is_second = found == values[:, 0], found == values[:, 1]
        if not np.all(is_first | is_second):
            return None
        low, high = np.where(is_first, middle, low), np.where(is_second, middle, high)
    return high


def _of(function: Function, bits: Words) -> Singles:
    return function(bits.view(np.float32))

"""Conversions between floating-point values and quantized values.

A QUANTIZE that never falls is known by the least number of each result, a threshold, which the kernel itself determines
by halving the ordered float32 numbers. If the params name a line that is right on both sides of all thresholds, it is
right everywhere. Else a line returns each number's result or the one below it, and one threshold decides between them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.arrays import Integers, Singles
from tflq.interpreter.layers.reals import RealLine

_INFINITE = 0x7F800000
"""Place of infinity in the order of float32 numbers: its bits."""
_NEVER = 0x7FFFFFFF
BELOW_HALF = np.float32(0.49999997)
"""Added to a float32, it is a whole number or more from the next half on, and below one before it."""


@dataclass(frozen=True, eq=False)
class ByThresholds:
    """Results less the least of their type: g + (x >= least[g]), with g = trunc(clip(x * scale + offset, 0, 255)).

    Attributes:
        least: int32[256]: rank of the least number with a result above the index.
        scale: Scale of the line.
        offset: Offset of the line.
        of_nan: the result of NaN.
    """

    least: NDArray[np.int32]
    scale: float
    offset: float
    of_nan: int

    def of(self, x: Singles) -> Integers:
        """Return the results of numbers that are not NaN, as kernels.c computes them."""
        with np.errstate(over="ignore"):
            line = x * np.float32(self.scale) + np.float32(self.offset)
        guess = np.clip(line, 0, 255).astype(np.int64)
        bits = x.view(np.int32).astype(np.int64)
        place = np.where(bits < 0, -(bits & _NEVER), bits)
        return np.asarray(guess + (place >= self.least[guess]), np.int64)


@dataclass(frozen=True)
class ByLine:
    """Results less the least of their type: clip(round(f32(f32(x * scale) + offset)), -zero, 255 - zero) + zero.

    Attributes:
        line: Line with a zero that is less the least of the type, too.
        of_nan: the result of NaN.
    """

    line: RealLine
    of_nan: int

    def of(self, x: Singles) -> Integers:
        """Return the results of numbers that are not NaN, as kernels.c computes them."""
        line = self.line
        found: Singles
        with np.errstate(over="ignore"):
            found = x * np.float32(line.scale) + np.float32(line.offset)
        found = np.clip(found, np.float32(-line.zero), np.float32(255 - line.zero))
        whole: Singles = np.trunc(found + np.copysign(BELOW_HALF, found)) if line.is_away else np.rint(found)
        return np.asarray(whole.astype(np.int64) + line.zero, np.int64)


def by_thresholds(rule: Callable[[Singles], Integers], line: RealLine | None = None) -> ByThresholds | ByLine | None:
    """Return the line or the thresholds of a rule, or None if no line leads to them.

    The rule and both lines rise, so that equality at each threshold and just before it proves equality between them.

    Args:
        rule: float32[n] -> results 0..255; never falls from -infinity to infinity.
        line: Possible form of the rule, its zero less the least of the type.
    """
    wanted = np.arange(1, 256)
    low, high = np.full(255, -_INFINITE - 1), np.full(255, _INFINITE + 1)  # result below, not below: nothing lies there
    while (high - low > 1).any():
        middle = (low + high) // 2
        reached = rule(_numbers(middle)) >= wanted
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    finite = np.flatnonzero(np.abs(high) < _INFINITE)
    ends = _numbers(np.concatenate([high, high - 1, [-_INFINITE, _INFINITE]]).clip(-_INFINITE, _INFINITE))
    zero, of_nan = rule(np.array([-0.0, np.nan], np.float32))
    if not finite.size or zero != rule(np.zeros(1, np.float32))[0]:
        return None
    if line is not None:
        alone = ByLine(line, int(of_nan))
        if np.array_equal(alone.of(ends), rule(ends)):
            return alone
    first, last = finite[0], finite[-1]
    with np.errstate(all="ignore"):
        start, end = _numbers(high[[first, last]]).astype(np.float64)
        slope = (last - first) / (end - start)
        guess = np.array([slope, first + 0.5 - slope * start], np.float32)
    least = np.append(np.where(high > _INFINITE, _NEVER, high), _NEVER).astype(np.int32)
    found = ByThresholds(least, float(guess[0]), float(guess[1]), int(of_nan))
    return found if np.isfinite(guess).all() and np.array_equal(found.of(ends), rule(ends)) else None


def _numbers(place: Integers) -> Singles:
    """Return float32 numbers by their place in order: 0 for 0 (and -0), the least positive one 1, its opposite -1."""
    return np.where(place < 0, (1 << 31) - place, place).astype(np.uint32).view(np.float32)


@dataclass(frozen=True, eq=False)
class ToReals:
    """A function from quantized values to reals.

    Attributes:
        numbers: float32[256].
        line: scale and the value that is 0, less the least of the type: f32((q - zero) * scale); None if it is none.
    """

    numbers: Singles
    line: tuple[float, int] | None


def to_reals(numbers: Singles) -> ToReals:
    """Return a table of results, as a line if it is one."""
    zeros = np.flatnonzero(numbers == 0)
    if zeros.size == 1:
        zero = int(zeros[0])
        scale = numbers[zero + 1] if zero < 255 else -numbers[zero - 1]
        if np.array_equal((np.arange(256, dtype=np.float32) - np.float32(zero)) * scale, numbers):
            return ToReals(numbers, (float(scale), zero))
    return ToReals(numbers, None)

"""QUANTIZE of real numbers as thresholds: a rule that never falls is known by the least number of each result.

The thresholds are found by the kernel itself, by halving the ordered float32 numbers. A line then gives each number's
result or the one below it, and one threshold decides which.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]
_INFINITE = 0x7F800000
"""Place of infinity in the order of float32 numbers: its bits."""
_NEVER = 0x7FFFFFFF


@dataclass(frozen=True, eq=False)
class ByThresholds:
    """Results less the least of their type: g + (x >= least[g]), where g = trunc(clip(x * scale + offset, 0, 255)).

    Attributes:
        least: int32[256]: place in order of the least number whose result is above the index.
        scale: of the line.
        offset: of the line.
        of_nan: the result of NaN.
    """

    least: NDArray[np.int32]
    scale: float
    offset: float
    of_nan: int

    def of(self, x: Floats) -> Integers:
        """Return the results of numbers that are not NaN, as kernels.c computes them."""
        with np.errstate(over="ignore"):
            line = x * np.float32(self.scale) + np.float32(self.offset)
        guess = np.clip(line, 0, 255).astype(np.int64)
        bits = x.view(np.int32).astype(np.int64)
        place = np.where(bits < 0, -(bits & _NEVER), bits)
        return np.asarray(guess + (place >= self.least[guess]), np.int64)


def by_thresholds(rule: Callable[[Floats], Integers]) -> ByThresholds | None:
    """Return the thresholds of a rule, or None where no line leads to them.

    Both the rule and the guess g rise, so that being right at each threshold and in front of it proves all between.

    Args:
        rule: float32[n] -> results 0..255; never falls from -infinity to infinity.
    """
    wanted = np.arange(1, 256)
    low, high = np.full(255, -_INFINITE - 1), np.full(255, _INFINITE + 1)  # result below, not below: nothing lies there
    while (high - low > 1).any():
        middle = (low + high) // 2
        reached = rule(_numbers(middle)) >= wanted
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    finite = np.flatnonzero(np.abs(high) < _INFINITE)
    zero, of_nan = rule(np.array([-0.0, np.nan], np.float32))
    if not finite.size or zero != rule(np.zeros(1, np.float32))[0]:
        return None
    first, last = finite[0], finite[-1]
    with np.errstate(all="ignore"):
        start, end = _numbers(high[[first, last]]).astype(np.float64)
        slope = (last - first) / (end - start)
        line = np.array([slope, first + 0.5 - slope * start], np.float32)
    least = np.append(np.where(high > _INFINITE, _NEVER, high), _NEVER).astype(np.int32)
    found = ByThresholds(least, float(line[0]), float(line[1]), int(of_nan))
    ends = _numbers(np.concatenate([high, high - 1, [-_INFINITE, _INFINITE]]).clip(-_INFINITE, _INFINITE))
    return found if np.isfinite(line).all() and np.array_equal(found.of(ends), rule(ends)) else None


def _numbers(place: Integers) -> Floats:
    """Return float32 numbers by their place in order: 0 for 0 (and -0), the least positive one 1, its opposite -1."""
    return np.where(place < 0, (1 << 31) - place, place).astype(np.uint32).view(np.float32)

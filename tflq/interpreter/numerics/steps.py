"""What a float map must reproduce, and the map in float64 that does."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tflq.arrays import Doubles, Integers
from tflq.interpreter.numerics.step_map import Reals, StepMap

POINT = 2.0**-20
"""Offsets that are no farther apart count as one."""
FAR = 2.0**80
"""Offset of channels that are constant."""


@dataclass(frozen=True)
class Steps:
    """A nondecreasing step function on accumulators [lower, upper] of each channel.

    Attributes:
        thresholds: T, int64[K, O], in [lower, upper + 1].
        codes: quantized values int64[K, 1] that T belongs to: minimum + 1 and on.
        lower: int64[O], smallest accumulator.
        upper: int64[O], largest.
        slope: float64[O], quantized values per unit of the accumulator.
        zero_point: the quantized value that stands for 0, where a rule may change its direction of rounding.
        minimum: smallest quantized value.
        maximum: largest.
    """

    thresholds: Integers
    codes: Integers
    lower: Integers
    upper: Integers
    slope: Doubles
    zero_point: int
    minimum: int
    maximum: int

    def late(self, step_map: StepMap, delay: int = 0) -> NDArray[np.bool_]:
        """Where the map has not reached code k at T[k] + delay: bool[K, O]."""
        at = self.thresholds + delay if delay else self.thresholds
        below: NDArray[np.bool_] = step_map.rounded(at) < self.codes
        below &= at <= self.upper
        return below

    def early(self, step_map: StepMap, advance: int = 1) -> NDArray[np.bool_]:
        """Where the map has reached code k at T[k] - advance: bool[K, O]."""
        at = self.thresholds - advance
        above: NDArray[np.bool_] = step_map.rounded(at) >= self.codes
        above &= at >= self.lower
        return above

    def bounds(self, levels: Doubles, part: slice) -> tuple[Doubles, Doubles]:
        """Return the bounds on an offset B with T + B >= level and T - 1 + B < level, for the levels of some codes.

        Args:
            levels: [K, O], the real number at which the map reaches each code, in units of the accumulator.
            part: of the codes.
        """
        t = self.thresholds[part]
        if t.shape[0] == 0:
            return np.full(t.shape[1], -np.inf), np.full(t.shape[1], np.inf)
        bound = levels[part] - t
        low: Doubles = np.max(bound, axis=0, initial=-np.inf, where=t <= self.upper)
        high: Doubles = np.min(bound, axis=0, initial=np.inf, where=t > self.lower) + 1
        return low, high

    def inside(self) -> NDArray[np.bool_]:
        """Where T[k] lies between two accumulators: bool[K, O]."""
        return (self.thresholds > self.lower) & (self.thresholds <= self.upper)

    def at(self, channels: Integers, accumulators: Integers) -> Integers:
        """Return the quantized values of accumulators of channels, int64[n] each."""
        reached: Integers = (self.thresholds[:, channels] <= accumulators).sum(axis=0)
        return reached + self.minimum

    def with_constants(self, found: StepMap, channels: Integers) -> StepMap:
        """Let channels keep the code of their smallest accumulator: (acc + 2^80) * (code * 2^-80), without correction.

        No accumulator below 2^52 moves that by half a code.
        """
        if not channels.size:
            return found
        codes = self.at(channels, self.lower[channels])

        def replaced(whole: Reals, values: Doubles | float) -> Reals:
            changed: Reals = whole.copy()
            changed[channels] = values
            return changed

        scale, offset = replaced(found.scale, codes / FAR), replaced(found.offset, FAR)
        low, high = (None if end is None else replaced(end, 0.0) for end in (found.low, found.high))
        return replace(found, scale=scale, offset=offset, low=low, high=high)


def fit_in_float64(steps: Steps) -> StepMap | None:
    """Return a StepMap in float64 that equals the steps, compared at every threshold; None where that fails.

    One offset serves all quantized values where thresholds allow it, else values above and up to the zero point get
    offsets of their own, by a correction.
    """
    levels = (steps.codes - 0.5) / steps.slope
    constant = np.flatnonzero(~steps.inside().any(axis=0))
    split = int(np.clip(steps.zero_point - steps.minimum, 0, steps.codes.shape[0]))
    down, up = steps.bounds(levels, slice(split)), steps.bounds(levels, slice(split, None))
    low, high = np.maximum(down[0], up[0]), np.minimum(down[1], up[1])
    offset = middle(low, high)
    # Ties to even leave one offset, a whole bias, which the bounds miss by their rounding.
    offset = np.where(high - low < POINT, np.rint(offset / POINT) * POINT, offset)
    plain = StepMap(steps.slope, offset, None, None, steps.minimum, steps.maximum)
    if np.all(high - low > -POINT):
        found = steps.with_constants(plain, constant)
        if _equal(steps, found):
            return found
    found = steps.with_constants(_corrected(steps, down, up), constant)
    return found if _equal(steps, found) else None


def _equal(steps: Steps, found: StepMap) -> bool:
    return not (np.any(steps.late(found)) or np.any(steps.early(found)))


def _corrected(steps: Steps, down: tuple[Doubles, Doubles], up: tuple[Doubles, Doubles]) -> StepMap:
    """Let quantized values above the zero point have offsets B + D, those up to it B - D; d = D * slope.

    D is 0 where one offset serves all. d stays below 1/4, so that u + correction(u) rounds to the zero point wherever
    |real| < d.
    """
    (down_low, down_high), (up_low, up_high) = down, up
    slope = steps.slope
    apart = np.clip((middle(up_low, up_high) - middle(down_low, down_high)) / 2, 0, (0.25 - 2.0**-40) / slope)
    apart = np.where(np.maximum(down_low, up_low) < np.minimum(down_high, up_high), 0, apart)
    between = middle(np.maximum(up_low - apart, down_low + apart), np.minimum(up_high - apart, down_high + apart))
    centre = steps.zero_point / 2
    low, high = centre - apart * slope, centre + apart * slope
    return StepMap(slope, between - centre / slope, low, high, steps.minimum, steps.maximum)


def middle(low: Doubles, high: Doubles) -> Doubles:
    """Return the middle of an interval; half a unit inside where one end is open, 0 where both are."""
    open_low, open_high = np.isinf(low), np.isinf(high)
    bottom = np.where(open_low, np.where(open_high, 0.0, high - 1), low)
    return (bottom + np.where(open_high, bottom + 1, high)) / 2 - 0.5 * (open_low & open_high)

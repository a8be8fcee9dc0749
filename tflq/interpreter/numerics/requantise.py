"""From accumulators back to narrow integers: a floating-point map that is proven equal to the exact integer rule.

A requantisation F is a nondecreasing step function of the integer accumulator; so is the floating-point expression of
StepMap, because each of its operations is nondecreasing under IEEE rounding. With T[k] = min{acc: F(acc) >= k}, a map M
equals F on the whole range if M(T[k]) >= k and M(T[k] - 1) < k for every quantized value k. If only M(T[k] + 1) >= k
and M(T[k] - 2) < k hold, M equals F but for accumulators T[k] and T[k] - 1, and those few are listed as exceptions.
`fit_step_map` finds every T[k] from F itself and checks just that: nothing is assumed about the size of rounding errors
(docs/exactness.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from tflq.graph import Array
from tflq.interpreter.accumulate.bounds import FLOAT32_EXACT
from tflq.interpreter.numerics.fixed_point import Integers
from tflq.interpreter.numerics.step_map import Exact, Reals, StepMap, requantise

__all__ = ["Exact", "StepMap", "fit_step_map", "requantise"]

MOST_CODES = 1 << 10
"""Outputs with more quantized values (int16) are not fitted: the exact rule runs."""
SMALLEST_SCALE = 1e-200
"""Below it, quantized values / scale could overflow float64.

No accumulator reaches a second quantized value there anyway.
"""
STEPS = sorted(product(range(-6, 7), range(-2, 3)), key=lambda step: abs(step[0]) + abs(step[1]))
"""Neighbours of (scale, offset) that the search in float32 tries, in units in the last place, nearest first."""

_Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class _Problem:
    """What a map must reproduce: thresholds [K, O] of quantized values [K, 1] on [lower, upper]."""

    thresholds: Integers
    codes: Integers
    lower: Integers
    upper: Integers
    zero_point: int
    minimum: int
    maximum: int

    def late(self, step_map: StepMap, delay: int = 0) -> NDArray[np.bool_]:
        """Where the map has not reached code k at T[k] + delay: bool[K, O]."""
        below: NDArray[np.bool_] = step_map.rounded(np.minimum(self.thresholds + delay, self.upper)) < self.codes
        return below & (self.thresholds + delay <= self.upper)

    def early(self, step_map: StepMap, advance: int = 1) -> NDArray[np.bool_]:
        """Where the map has reached code k at T[k] - advance: bool[K, O]."""
        above: NDArray[np.bool_] = step_map.rounded(np.maximum(self.thresholds - advance, self.lower)) >= self.codes
        return above & (self.thresholds - advance >= self.lower)

    def wrong(self, step_map: StepMap) -> Integers:
        """Number of quantized values that the map reaches too late or too early: int64[O]."""
        return np.asarray((self.late(step_map) | self.early(step_map)).sum(axis=0), np.int64)

    def of(self, channels: Integers) -> _Problem:
        """The same for some channels."""
        return replace(
            self, thresholds=self.thresholds[:, channels], lower=self.lower[channels], upper=self.upper[channels]
        )

    def bounds(self, slope: Reals, part: slice) -> tuple[_Doubles, _Doubles]:
        """Return the bounds on an offset B with (T + B) * slope >= k - 1/2 and (T - 1 + B) * slope < k - 1/2."""
        codes, t = self.codes[part], self.thresholds[part]
        if codes.shape[0] == 0:
            return np.full(slope.shape, -np.inf), np.full(slope.shape, np.inf)
        bound = (codes - 0.5) / slope.astype(np.float64) - t
        return (
            np.where(t <= self.upper, bound, -np.inf).max(axis=0),
            np.where(t > self.lower, bound + 1, np.inf).min(axis=0),
        )


def fit_step_map(
    exact: Exact,
    scale: Array,
    offset: Array,
    lower: Integers,
    upper: Integers,
    zero_point: int,
    minimum: int,
    maximum: int,
) -> StepMap | None:
    """Find a StepMap equal to an integer rule for every accumulator in [lower, upper].

    In float32 where accumulators stay below 2^24 and few exceptions remain, else in float64 without exceptions.

    Args:
        exact: the rule; nondecreasing in the accumulator on [lower, upper] for each channel (the caller's promise),
            with quantized values clipped to [minimum, maximum].
        scale: [O], quantized values per unit of the accumulator, as the rule has it; > 0. The map uses it as its slope.
        offset: [O], code about (acc + offset) * scale + zero_point. Only speed depends on its being close.
        lower: int64[O], smallest accumulator.
        upper: int64[O], largest accumulator.
        zero_point: the code that stands for 0, where a rule may change its direction of rounding.
        minimum: smallest quantized value.
        maximum: largest quantized value.

    Returns:
        The map, proven; None where none was found, there are too many quantized values, or numbers exceed float64's
        integers.
    """
    limit = 1 << 52
    if maximum - minimum > MOST_CODES or np.any(lower < -limit) or np.any(upper > limit) or not _usable(scale):
        return None
    slope, start = np.asarray(scale, np.float64), np.asarray(offset, np.float64)
    codes = np.arange(minimum + 1, maximum + 1)[:, None]
    guess = np.ceil((codes - zero_point - 0.5) / slope - start)
    thresholds = _thresholds(exact, codes, guess, lower, upper)
    problem = _Problem(thresholds, codes, lower, upper, zero_point, minimum, maximum)
    for corrected in (False, True):
        found = _candidate(problem, slope, corrected)
        if not np.any(problem.wrong(found)):
            return _in_float32(exact, problem, slope, corrected, found)
    return None


def _usable(scale: Array) -> bool:
    values = np.asarray(scale, np.float64)
    return bool(np.all(np.isfinite(values) & (values > SMALLEST_SCALE)))


def _thresholds(exact: Exact, codes: Integers, guess: _Doubles, lower: Integers, upper: Integers) -> Integers:
    """Return T[k, o] = min{acc in [lower, upper]: exact(acc) >= k}, or upper + 1 where there is none."""
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


def _candidate(problem: _Problem, slope: Reals, corrected: bool, nudge: int = 0) -> StepMap:
    """Return the map with this slope in the middle of what the thresholds allow, the offset nudged by some ulps.

    Without correction one offset B serves all quantized values. With it, quantized values above the zero point allow
    offsets B + D, those up to it B - D; d = D * slope, 0 where one B serves. d stays below 1/4, so that u +
    correction(u) rounds to the zero point wherever |real| < d.
    """
    if not corrected:
        offset = _nudged(_in(_middle(*problem.bounds(slope, slice(None))), slope), nudge)
        return StepMap(slope, offset, None, None, problem.minimum, problem.maximum)
    split = int(np.clip(problem.zero_point - problem.minimum, 0, problem.codes.shape[0]))
    down_low, down_high = problem.bounds(slope, slice(split))
    up_low, up_high = problem.bounds(slope, slice(split, None))
    apart = np.clip((_middle(up_low, up_high) - _middle(down_low, down_high)) / 2, 0, (0.25 - 2.0**-40) / slope)
    apart = np.where(np.maximum(down_low, up_low) < np.minimum(down_high, up_high), 0, apart)
    middle = _middle(np.maximum(up_low - apart, down_low + apart), np.minimum(up_high - apart, down_high + apart))
    centre = problem.zero_point / 2
    offset = _nudged(_in(middle - centre / slope, slope), nudge)
    low, high = _in(centre - apart * slope, slope), _in(centre + apart * slope, slope)
    return StepMap(slope, offset, low, high, problem.minimum, problem.maximum)


def _middle(low: _Doubles, high: _Doubles) -> _Doubles:
    """Return the middle of an interval; half a unit inside where one end is open, 0 where both are."""
    open_low, open_high = np.isinf(low), np.isinf(high)
    bottom = np.where(open_low, np.where(open_high, 0.0, high - 1), low)
    return (bottom + np.where(open_high, bottom + 1, high)) / 2 - 0.5 * (open_low & open_high)


def _in(x: Reals, like: Reals) -> Reals:
    converted: Reals = x.astype(like.dtype)
    return converted


def _nudged(x: Reals, ulps: int) -> Reals:
    """Return x moved by whole units in the last place: exact, but where the exponent changes on the way."""
    moved: Reals = x + ulps * np.spacing(np.abs(x))
    return moved.astype(x.dtype)


def _in_float32(exact: Exact, problem: _Problem, slope: _Doubles, corrected: bool, wide: StepMap) -> StepMap:
    """Search slopes and offsets near the true ones for the fewest exceptions; `wide` where too many remain."""
    single: Reals = slope.astype(np.float32)
    reach = max(int(np.abs(problem.lower).max()), int(np.abs(problem.upper).max())) + 2
    if reach >= FLOAT32_EXACT or not np.all(np.isfinite(single) & (single > np.finfo(np.float32).tiny)):
        return wide
    best = _candidate(problem, single, corrected)
    fewest = problem.wrong(best)
    for slope_step, offset_step in STEPS:
        channels = np.flatnonzero(fewest)
        if not channels.size:
            return best
        part = problem.of(channels)
        tried = _candidate(part, _nudged(single[channels], slope_step), corrected, offset_step)
        wrong = part.wrong(tried)
        better = wrong < fewest[channels]
        best = _with(best, channels[better], tried, better)
        fewest[channels] = np.minimum(wrong, fewest[channels])
    return _with_exceptions(exact, problem, best, wide)


def _with(best: StepMap, channels: Integers, tried: StepMap, better: NDArray[np.bool_]) -> StepMap:
    """Return the map with the channels in which another one, of some channels, is better."""

    def joined(whole: Reals | None, part: Reals | None) -> Reals | None:
        if whole is None or part is None:
            return None
        changed: Reals = whole.copy()
        changed[channels] = part[better]
        return changed

    scale, offset = joined(best.scale, tried.scale), joined(best.offset, tried.offset)
    assert scale is not None
    assert offset is not None
    low, high = joined(best.low, tried.low), joined(best.high, tried.high)
    return StepMap(scale, offset, low, high, best.minimum, best.maximum)


def _with_exceptions(exact: Exact, problem: _Problem, found: StepMap, wide: StepMap) -> StepMap:
    """List the accumulators at which the map is off; `wide` where they are many or more than one from a threshold."""
    if np.any(problem.late(found, 1) | problem.early(found, 2)):
        return wide
    late, early = np.nonzero(problem.late(found)), np.nonzero(problem.early(found))
    places = {(int(o), int(problem.thresholds[k, o])) for k, o in zip(*late, strict=True)}
    places |= {(int(o), int(problem.thresholds[k, o]) - 1) for k, o in zip(*early, strict=True)}
    channels = found.scale.size
    if 4 * len(places) > max(channels, 4):
        return wide
    listed = []
    for channel, accumulator in sorted(places):
        code = exact(np.full((1, channels), accumulator, np.int64))[0, channel]
        listed.append((channel, accumulator, int(code)))
    return replace(found, exceptions=tuple(listed), wide=wide)

"""Steps that a float map must reproduce, and the equal maps in float64 and float32.

A float32 map costs half of a float64 one on many elements. With slope s fixed, fl(fl(acc + B) * s) reaches k if acc + B
>= q[k], and q follows from how float32 rounds: a result rounds up to a float32 number r if the exact value is past the
middle between r and the number before it. So the offsets B that reach every code at T[k] and none at T[k] - 1 form an
interval, from max(q[k] - T[k]) to below min(q[k] - T[k]) + 1, and slopes are tried, in steps of 1 ULP, until the
interval contains a float32 number. The search only proposes a map: the map is compared at every threshold.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from tflq.arrays import Doubles, Integers, Singles
from tflq.interpreter.accumulate.products import FLOAT32_EXACT
from tflq.interpreter.numerics.step_map import Fixups, Reals, StepMap

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
        zero_point: the quantized value of 0, at which a rule may change its direction of rounding.
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
        """Return True for each code k that the map has not reached at T[k] + delay: bool[K, O]."""
        at = self.thresholds + delay if delay else self.thresholds
        below: NDArray[np.bool_] = step_map.rounded(at) < self.codes
        below &= at <= self.upper
        return below

    def early(self, step_map: StepMap, advance: int = 1) -> NDArray[np.bool_]:
        """Return True for each code k that the map has reached at T[k] - advance: bool[K, O]."""
        at = self.thresholds - advance
        above: NDArray[np.bool_] = step_map.rounded(at) >= self.codes
        above &= at >= self.lower
        return above

    def bounds(self, levels: Doubles, part: slice) -> tuple[Doubles, Doubles]:
        """Return the bounds on an offset B with T + B >= level and T - 1 + B < level, for the levels of some codes.

        Args:
            levels: [K, O], the value at which the map reaches each code, in units of the accumulator.
            part: Range of the codes.
        """
        t = self.thresholds[part]
        if t.shape[0] == 0:
            return np.full(t.shape[1], -np.inf), np.full(t.shape[1], np.inf)
        bound = levels[part] - t
        low: Doubles = np.max(bound, axis=0, initial=-np.inf, where=t <= self.upper)
        high: Doubles = np.min(bound, axis=0, initial=np.inf, where=t > self.lower) + 1
        return low, high

    def inside(self) -> NDArray[np.bool_]:
        """Return True for each T[k] between two accumulators: bool[K, O]."""
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
    """Return a StepMap in float64 that equals the steps, compared at every threshold; None if that fails.

    One offset serves all quantized values if thresholds allow it, else values above and up to the zero point get
    separate offsets, by a correction.
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
    """Give quantized values above the zero point the offset B + D, values up to it B - D; d = D * slope.

    D is 0 if one offset serves all. d stays below 1/4, so that u + correction(u) rounds to the zero point wherever
    |real| < d.
    """
    (down_low, down_high), (up_low, up_high) = down, up
    slope = steps.slope
    apart = np.clip((middle(up_low, up_high) - middle(down_low, down_high)) / 2, 0, (0.25 - 2.0**-40) / slope)
    apart = np.where(np.maximum(down_low, up_low) < np.minimum(down_high, up_high), 0, apart)
    between = middle(np.maximum(up_low - apart, down_low + apart), np.minimum(up_high - apart, down_high + apart))
    center = steps.zero_point / 2
    low, high = center - apart * slope, center + apart * slope
    return StepMap(slope, between - center / slope, low, high, steps.minimum, steps.maximum)


def middle(low: Doubles, high: Doubles) -> Doubles:
    """Return the middle of an interval; half a unit inside if one end is open, 0 if both are."""
    open_low, open_high = np.isinf(low), np.isinf(high)
    bottom = np.where(open_low, np.where(open_high, 0.0, high - 1), low)
    return (bottom + np.where(open_high, bottom + 1, high)) / 2 - 0.5 * (open_low & open_high)


SLOPES = (0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6)
"""Neighbors of the slope, in units in the last place, nearest first."""
CORRECTIONS = ((0, 0), (0, 1), (0, -1), (1, 0), (-1, 0), (1, -1), (-1, 1), (1, 1), (-1, -1))
"""Neighbors of a correction's ends, likewise."""
FEW = 4
"""A channel of so few thresholds may be compared with them."""
_EXPONENT = np.int64(0x7FF0_0000_0000_0000)


def fit_in_float32(steps: Steps, wide: StepMap, most: int | None = None) -> StepMap:
    """Return a StepMap in float32 that equals the steps, with few exceptions; `wide` if there are too many.

    Args:
        steps: Steps to reproduce.
        wide: the map in float64.
        most: exceptions that each channel may have, without changes; None for as many of both as numpy's calls bear.
    """
    reach = max(int(np.abs(steps.lower).max()), int(np.abs(steps.upper).max())) + 2
    if reach >= FLOAT32_EXACT:
        return wide
    inside = steps.inside()
    changing = inside.any(axis=0)
    found = steps.with_constants(_search(steps, wide, np.flatnonzero(changing)), np.flatnonzero(~changing))
    return _with_fixups(steps, found, wide, inside, most)


@dataclass(frozen=True)
class _Proposal:
    """Constants of some channels, float32[O], and how many thresholds they miss: int64[O]."""

    scale: Singles
    offset: Singles
    low: Singles
    high: Singles
    missed: Integers

    def improve(self, channels: Integers, other: _Proposal) -> None:
        """Adopt the proposals that miss fewer thresholds of these channels."""
        better = other.missed < self.missed[channels]
        for field in fields(self):
            getattr(self, field.name)[channels[better]] = getattr(other, field.name)[better]


@dataclass(frozen=True)
class _Part:
    """The channels that still miss thresholds.

    Attributes:
        channels: Indices of the channels.
        thresholds: float64[K, O].
        binds_below: Mask of the T[k] that are accumulators, so that k must be reached there: bool[K, O].
        binds_above: Mask of the T[k] - 1 that are accumulators, so that k must not be reached there.
    """

    channels: Integers
    thresholds: Doubles
    binds_below: NDArray[np.bool_]
    binds_above: NDArray[np.bool_]

    def of(self, left: Integers) -> _Part:
        """Return some of the channels."""
        bindings = self.binds_below[:, left], self.binds_above[:, left]
        return _Part(self.channels[left], self.thresholds[:, left], *bindings)

    def proposals(self, target: Doubles, slope: Singles, low: Singles, high: Singles) -> list[_Proposal]:
        """Return the middle of the offsets that fit, else both ends too, each of which serves one side.

        Args:
            target: Result of `_targets` for these ends: the values that acc + B times the slope must reach, [K, 1] or
                [K, O].
            slope: [O].
            low: [O], of the correction.
            high: [O].
        """
        gap = _before(target / slope) - self.thresholds
        least: Doubles = np.max(gap, axis=0, initial=-np.inf, where=self.binds_below)
        most: Doubles = np.min(gap, axis=0, initial=np.inf, where=self.binds_above) + 1
        between = middle(least, most).astype(np.float32)
        offsets = [between]
        if not np.all((least <= between) & (between < most)):
            offsets += [np.where(np.isinf(end), between, end).astype(np.float32) for end in (least, most)]
        missed = [
            (((gap > offset) & self.binds_below) | ((gap + 1 <= offset) & self.binds_above)).sum(axis=0)
            for offset in offsets
        ]
        return [_Proposal(slope, o, low, high, m) for o, m in zip(offsets, missed, strict=True)]


def _search(steps: Steps, wide: StepMap, channels: Integers) -> StepMap:
    """Propose constants near the float64 ones, until no channel misses a threshold or all neighbors were tried."""
    slope = np.maximum(steps.slope, np.finfo(np.float32).tiny).astype(np.float32)
    is_corrected = wide.low is not None and wide.high is not None
    low, high = (np.zeros_like(slope) if end is None else end.astype(np.float32) for end in (wide.low, wide.high))
    missed = np.full(slope.shape, steps.codes.size + 1)
    best = _Proposal(slope.copy(), wide.offset.astype(np.float32), low.copy(), high.copy(), missed)
    t = steps.thresholds
    every = _Part(np.arange(slope.size), t.astype(np.float64), t <= steps.upper, t > steps.lower)
    part = every.of(channels)
    plain = _before(_reached(steps.codes))
    for low_step, high_step in CORRECTIONS if is_corrected else CORRECTIONS[:1]:
        if not part.channels.size:
            break
        for slope_step in SLOPES:
            at = part.channels
            ends = _nudged(low[at], low_step), _nudged(high[at], high_step)
            target = _before(plain - np.where(steps.codes > steps.zero_point, *ends[::-1])) if is_corrected else plain
            for proposal in part.proposals(target, _nudged(slope[at], slope_step), *ends):
                best.improve(at, proposal)
            part = part.of(np.flatnonzero(best.missed[at]))
            if not part.channels.size:
                break
    found = StepMap(best.scale, best.offset, None, None, steps.minimum, steps.maximum)
    return replace(found, low=best.low, high=best.high) if is_corrected else found


def _reached(codes: Integers) -> Doubles:
    """Return the smallest float32 numbers that rint takes to the codes, in float64: ties are rounded to even codes."""
    half = (codes - 0.5).astype(np.float32)
    return np.where(codes % 2 == 0, half, np.nextafter(half, np.float32(np.inf))).astype(np.float64)


def _before(x: Doubles) -> Doubles:
    """Return the least value that is rounded to a float32 number >= x.

    That is the middle between the first float32 number at or above x, n ULP, and the one before it; a little more if n
    is odd, because a tie is rounded to the even one.
    """
    x = x + 1e-300  # 0 has no exponent
    unit = (x.view(np.int64) & _EXPONENT).view(np.float64) * 2.0**-23
    n = np.ceil(x / unit)
    odd = n - 2 * np.floor(n / 2)
    reached: Doubles = (n - 0.5 + odd * 2.0**-12) * unit
    return reached


def _nudged(x: Singles, ulps: int) -> Singles:
    """Return x moved by `ulps` ULP: exact, unless the exponent changes on the way."""
    moved: Singles = x + np.float32(ulps) * np.spacing(np.abs(x))
    return moved


def _with_fixups(steps: Steps, found: StepMap, wide: StepMap, inside: NDArray[np.bool_], most: int | None) -> StepMap:
    """List the exceptions of a map; return `wide` if there are too many.

    An accumulator next to a threshold is an exception. A channel that is off by more and changes its code a few times
    only becomes constant, and is compared with its thresholds.
    """
    late, early = steps.late(found), steps.early(found)
    wrong = np.flatnonzero((late | early).any(axis=0))
    if not wrong.size:
        return found
    far = np.flatnonzero((steps.late(found, 1) | steps.early(found, 2)).any(axis=0))
    if np.any(inside[:, far].sum(axis=0) > FEW):
        return wide
    late[:, far] = early[:, far] = False
    places = np.concatenate([_places(steps.thresholds, late), _places(steps.thresholds - 1, early)])
    places = np.unique(places, axis=0)
    seldom = np.zeros_like(inside)
    seldom[:, far] = inside[:, far]
    changes = np.unique(_places(steps.thresholds, seldom), axis=0)
    if most is None:
        is_much = 4 * (len(places) + len(changes)) > max(found.scale.size, 4)
    else:
        is_much = bool(len(changes) or np.bincount(places[:, 0]).max(initial=0) > most)
    if is_much:
        return wide
    found = steps.with_constants(found, far)
    return replace(found, exceptions=_listed(steps, places), changes=_listed(steps, changes), wide=wide)


def _places(accumulators: Integers, where: NDArray[np.bool_]) -> Integers:
    """Return rows of channel and accumulator."""
    k, channels = np.nonzero(where)
    return np.stack([channels, accumulators[k, channels]], axis=1)


def _listed(steps: Steps, places: Integers) -> Fixups:
    codes = steps.at(places[:, 0], places[:, 1])
    return tuple((int(o), int(acc), int(code)) for (o, acc), code in zip(places, codes, strict=True))

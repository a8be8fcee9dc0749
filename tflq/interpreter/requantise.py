"""From accumulators back to narrow integers: a floating-point map that is proven equal to the exact integer rule.

A requantisation F is a nondecreasing step function of the integer accumulator; so is the floating-point expression
`rint(clip(...))` below, because each of its operations is nondecreasing under IEEE rounding. Two nondecreasing integer
step functions on a range are equal there if and only if they agree at T[k] and at T[k] - 1 for each code k, where
T[k] = min{acc: F(acc) >= k}. `fit_step_map` finds every T[k] from F itself and checks just that: nothing is assumed
about the size of rounding errors (docs/exactness.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.graph import Array
from tflq.interpreter.fixed_point import Integers

Exact = Callable[[Integers], Integers]
"""The integer rule: accumulators int64[..., O] -> codes int64[..., O]; the last axis is the channel."""

MOST_CODES = 1 << 10
"""Outputs with more codes (int16) are not fitted: the exact rule runs."""
SMALLEST_SCALE = 1e-200
"""Below it, codes / scale could overflow float64; no accumulator reaches a second code there anyway."""
BLOCK = 1 << 15
"""Elements at a time: the block and its buffer stay in the first and second-level cache."""
TILE = 1 << 12
"""Length to which the channels' constants are repeated, so that inner loops are long."""

_Reals = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class StepMap:
    """y = rint(clip(u + correction(u), minimum, maximum)), u = (acc + offset) * scale, in float64.

    correction(u) = clip(u, low, high), or 0 where `low` is None. It serves rules that round half away from zero or
    round twice: thresholds of codes above and below the zero point then move apart by 2 * d, which no affine map can
    do. With u = real + z/2, low = z/2 - d, high = z/2 + d it gives real + z + d * sign(real) where |real| >= d.

    Attributes:
        scale: float64[O].
        offset: float64[O], in units of the accumulator; biases and zero points are in it.
        low: float64[O] or None.
        high: float64[O] or None.
        minimum: smallest code.
        maximum: largest code.
    """

    scale: _Reals
    offset: _Reals
    low: _Reals | None
    high: _Reals | None
    minimum: int
    maximum: int

    def rounded(self, accumulators: Array) -> _Reals:
        """Return y as float64 for accumulators [..., O], unblocked: what the proof evaluates."""
        out = np.empty(accumulators.shape, np.float64)
        _evaluate(self, _constants(self), accumulators, out)
        return out


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

    Args:
        exact: the rule; nondecreasing in the accumulator on [lower, upper] for each channel (the caller's promise),
            with codes clipped to [minimum, maximum].
        scale: [O], codes per unit of the accumulator, as the rule has it; > 0. The map uses it as its slope.
        offset: [O], code about (acc + offset) * scale + zero_point. Only speed depends on its being close.
        lower: int64[O], smallest accumulator.
        upper: int64[O], largest accumulator.
        zero_point: the code that stands for 0, where a rule may change its direction of rounding.
        minimum: smallest code.
        maximum: largest code.

    Returns:
        The map, proven; None where none was found, there are too many codes, or numbers exceed float64's integers.
    """
    limit = 1 << 52
    if maximum - minimum > MOST_CODES or np.any(lower < -limit) or np.any(upper > limit) or not _usable(scale):
        return None
    slope, start = np.asarray(scale, np.float64), np.asarray(offset, np.float64)
    codes = np.arange(minimum + 1, maximum + 1)[:, None]
    guess = np.ceil((codes - zero_point - 0.5) / slope - start)
    thresholds = _thresholds(exact, codes, guess, lower, upper)
    for fitted in (
        _affine(slope, thresholds, codes, lower, upper, minimum, maximum),
        _corrected(slope, thresholds, codes, lower, upper, zero_point, minimum, maximum),
    ):
        if _agrees(fitted, thresholds, codes, lower, upper):
            return fitted
    return None


def requantise(step_map: StepMap | None, exact: Exact, accumulators: Array, dtype: np.dtype[np.generic]) -> Array:
    """Apply a proven map, or the integer rule where there is none.

    Args:
        step_map: of `fit_step_map` for this very rule, or None.
        exact: the rule.
        accumulators: exact integers [..., O] in float32, float64 or int64.
        dtype: of the result.

    Returns:
        Codes [..., O].
    """
    result = np.empty(accumulators.shape, dtype)
    channels = accumulators.shape[-1]
    if result.size == 0:
        return result
    flat, out = accumulators.reshape(-1), result.reshape(-1)
    if step_map is None:
        rows = max(1, BLOCK // channels) * channels
        for i in range(0, flat.size, rows):
            block = flat[i : i + rows].reshape(-1, channels).astype(np.int64)
            np.copyto(out[i : i + rows], exact(block).reshape(-1), casting="unsafe")
        return result
    _map_in_blocks(step_map, flat, out, channels)
    return result


def _map_in_blocks(step_map: StepMap, flat: Array, out: Array, channels: int) -> None:
    repeats = max(1, min(TILE, flat.size) // channels)
    tile = repeats * channels
    constants = tuple(None if c is None else np.tile(c, repeats) for c in _constants(step_map))
    whole = flat.size // tile * tile
    rows = max(1, BLOCK // tile) * tile
    buffer = np.empty(min(rows, max(whole, tile)), np.float64)
    for i in range(0, whole, rows):
        n = min(rows, whole - i)
        _evaluate(step_map, constants, flat[i : i + n].reshape(-1, tile), buffer[:n].reshape(-1, tile))
        np.copyto(out[i : i + n], buffer[:n], casting="unsafe")
    rest = flat.size - whole
    if rest:
        ends = tuple(None if c is None else c[:rest] for c in constants)
        _evaluate(step_map, ends, flat[whole:], buffer[:rest])
        np.copyto(out[whole:], buffer[:rest], casting="unsafe")


_Constants = tuple[_Reals | None, ...]


def _constants(step_map: StepMap) -> _Constants:
    return (step_map.offset, step_map.scale, step_map.low, step_map.high)


def _evaluate(step_map: StepMap, constants: _Constants, accumulators: Array, out: _Reals) -> None:
    offset, scale, low, high = constants
    assert offset is not None
    assert scale is not None
    np.add(accumulators, offset, out=out)
    np.multiply(out, scale, out=out)
    if low is not None and high is not None:
        np.add(out, np.clip(out, low, high), out=out)
    np.clip(out, step_map.minimum, step_map.maximum, out=out)
    np.rint(out, out=out)


def _usable(scale: Array) -> bool:
    values = np.asarray(scale, np.float64)
    return bool(np.all(np.isfinite(values) & (values > SMALLEST_SCALE)))


def _thresholds(exact: Exact, codes: Integers, guess: _Reals, lower: Integers, upper: Integers) -> Integers:
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


def _feasible(slope: _Reals, t: Integers, codes: Integers, lower: Integers, upper: Integers) -> tuple[_Reals, _Reals]:
    """Return the bounds on an offset B with (T + B) * slope >= k - 1/2 and (T - 1 + B) * slope < k - 1/2."""
    if codes.shape[0] == 0:
        return np.full(slope.shape, -np.inf), np.full(slope.shape, np.inf)
    bound = (codes - 0.5) / slope - t
    return (
        np.where(t <= upper, bound, -np.inf).max(axis=0),
        np.where(t > lower, bound + 1, np.inf).min(axis=0),
    )


def _middle(low: _Reals, high: _Reals) -> _Reals:
    """Return the middle of an interval; half a unit inside where one end is open, 0 where both are."""
    open_low, open_high = np.isinf(low), np.isinf(high)
    bottom = np.where(open_low, np.where(open_high, 0.0, high - 1), low)
    return (bottom + np.where(open_high, bottom + 1, high)) / 2 - 0.5 * (open_low & open_high)


def _affine(
    slope: _Reals, t: Integers, codes: Integers, lower: Integers, upper: Integers, minimum: int, maximum: int
) -> StepMap:
    offset = _middle(*_feasible(slope, t, codes, lower, upper))
    return StepMap(slope, offset, None, None, minimum, maximum)


def _corrected(
    slope: _Reals,
    t: Integers,
    codes: Integers,
    lower: Integers,
    upper: Integers,
    zero_point: int,
    minimum: int,
    maximum: int,
) -> StepMap:
    """Thresholds above the zero point allow offsets B + D, those up to it B - D; d = D * slope, 0 where one B serves.

    d stays below 1/4, so that u + correction(u) rounds to the zero point wherever |real| < d.
    """
    split = int(np.clip(zero_point - minimum, 0, codes.shape[0]))
    down_low, down_high = _feasible(slope, t[:split], codes[:split], lower, upper)
    up_low, up_high = _feasible(slope, t[split:], codes[split:], lower, upper)
    apart = np.clip((_middle(up_low, up_high) - _middle(down_low, down_high)) / 2, 0, (0.25 - 2.0**-40) / slope)
    apart = np.where(np.maximum(down_low, up_low) < np.minimum(down_high, up_high), 0, apart)
    offset = _middle(np.maximum(up_low - apart, down_low + apart), np.minimum(up_high - apart, down_high + apart))
    centre = zero_point / 2
    half_distance = apart * slope
    return StepMap(slope, offset - centre / slope, centre - half_distance, centre + half_distance, minimum, maximum)


def _agrees(step_map: StepMap, t: Integers, codes: Integers, lower: Integers, upper: Integers) -> bool:
    reached = step_map.rounded(np.minimum(t, upper)) >= codes
    before = step_map.rounded(np.maximum(t - 1, lower)) < codes
    return bool(np.all((reached | (t > upper)) & (before | (t <= lower))))

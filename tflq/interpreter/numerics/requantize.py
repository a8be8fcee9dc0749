"""From accumulators back to narrow integers: a floating-point map that is proven equal to the exact integer rule.

A requantization F is a nondecreasing step function of the integer accumulator; so is the floating-point expression of
StepMap, because each of its operations is nondecreasing under IEEE rounding. With T[k] = min{acc: F(acc) >= k}, a map M
equals F on the whole range if M(T[k]) >= k and M(T[k] - 1) < k for every quantized value k. If only M(T[k] + 1) >= k
and M(T[k] - 2) < k are true, M equals F except for accumulators T[k] and T[k] - 1, and those few are listed as
exceptions. Every T[k] follows from F (thresholds.py), and just that is checked: no bound on rounding errors is assumed
(docs/internals/exactness.md).

Maps are fitted when they are first needed: in float64 with the first accumulators, in float32, which takes longer to
compute, once it pays for the number of accumulators.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from tflq.arrays import Doubles, Integers
from tflq.graph import Array
from tflq.interpreter.numerics.step_map import BLOCK, StepMap, apply
from tflq.interpreter.numerics.steps import Steps, fit_in_float32, fit_in_float64
from tflq.interpreter.numerics.thresholds import Exact, Reach, find_thresholds
from tflq.interpreter.recording.primitive import recorder

__all__ = ["Exact", "StepMaps", "fit_step_map", "requantize"]

MOST_CODES = 1 << 10
"""Outputs with more quantized values (int16) are not fitted: the exact rule runs."""
SMALLEST_SCALE = 1e-200
"""Below it, quantized values / scale could overflow float64.

No accumulator reaches a second quantized value there anyway.
"""
LISTED = 4
"""Accumulators that a map in float32 may get wrong in each channel where a compiled loop compares them all."""
PAYS = 50
"""Accumulators for each threshold from which on a map in float32 pays the time to find it."""


@dataclass(eq=False)
class StepMaps:
    """The maps of one rule on accumulators in [lower, upper].

    Attributes:
        exact: the rule.
        slope: float64[O], quantized values per unit of the accumulator; > 0.
        start: float64[O], code about (acc + start) * slope + zero_point.
        lower: int64[O], smallest accumulator.
        upper: int64[O], largest.
        zero_point: the code of 0.
        minimum: smallest quantized value.
        maximum: largest.
        reach: the rule's thresholds in closed form, or None.
        served: accumulators that went through the map in float64.
        direct: The rule itself in float32, operation by operation; None if it is another rule or sums are too large.
    """

    exact: Exact = field(compare=False)  # a method of the params that contain the map
    slope: Doubles
    start: Doubles
    lower: Integers
    upper: Integers
    zero_point: int
    minimum: int
    maximum: int
    reach: Reach | None = field(compare=False)
    served: int = field(default=0, compare=False)
    direct: StepMap | None = None

    @cached_property
    def in_float64(self) -> StepMap | None:
        """The proven map in float64, or None if the fit fails."""
        return fit_in_float64(self.steps())

    @cached_property
    def best(self) -> StepMap | None:
        """The proven map in float32 if accumulators stay below 2^24 and few exceptions remain, else in float64."""
        wide = self.in_float64
        return None if wide is None else fit_in_float32(self.steps(), wide)

    @cached_property
    def listed(self) -> StepMap | None:
        """The proven map in float32 with up to LISTED exceptions in each channel, else that in float64."""
        steps = self.steps()
        wide = vars(self).get("in_float64") or fit_in_float64(steps)
        return None if wide is None else fit_in_float32(steps, wide, LISTED)

    def serving(self, count: int) -> StepMap | None:
        """Return the map for `count` more accumulators; None if the rule itself must run."""
        if self.direct is not None:
            return self.direct
        if self.served >= self._pays:
            return self.best
        self.served += count
        return self.in_float64

    @cached_property
    def _pays(self) -> int:
        return PAYS * self.slope.size * (self.maximum - self.minimum)

    def steps(self) -> Steps:
        """Return the rule as thresholds."""
        codes = np.arange(self.minimum + 1, self.maximum + 1)[:, None]
        if self.reach is None:
            guess = np.ceil((codes - self.zero_point - 0.5) / self.slope - self.start)
        else:
            guess = self.reach(codes).astype(np.float64)
        thresholds = find_thresholds(self.exact, codes, guess, self.lower, self.upper)
        ends, limits = (self.lower, self.upper), (self.zero_point, self.minimum, self.maximum)
        return Steps(thresholds, codes, *ends, self.slope, *limits)


def fit_step_map(
    exact: Exact,
    scale: Array,
    offset: Array,
    lower: Integers,
    upper: Integers,
    zero_point: int,
    minimum: int,
    maximum: int,
    reach: Reach | None = None,
) -> StepMaps | None:
    """Return maps that equal an integer rule for every accumulator in [lower, upper], once they are needed.

    Args:
        exact: the rule; nondecreasing in the accumulator on [lower, upper] for each channel (the caller's promise),
            with quantized values clipped to [minimum, maximum].
        scale: [O], quantized values per unit of the accumulator, as the rule has it; >= 0. The map uses it as its
            slope.
        offset: [O], code about (acc + offset) * scale + zero_point. Only speed depends on its being close.
        lower: int64[O], smallest accumulator.
        upper: int64[O], largest accumulator.
        zero_point: the code of 0, at which a rule may change its direction of rounding.
        minimum: smallest quantized value.
        maximum: largest quantized value.
        reach: the smallest accumulator with `exact` >= k for quantized values k, in closed form (thresholds.py), which
            the rule itself then confirms; None if there is no such form.

    Returns:
        None if there are too many quantized values, or numbers exceed float64's integers.
    """
    limit = 1 << 52
    slope = np.asarray(scale, np.float64)
    is_usable = bool(np.all(np.isfinite(slope) & (slope >= 0)))
    if maximum - minimum > MOST_CODES or np.any(lower < -limit) or np.any(upper > limit) or not is_usable:
        return None
    slope, start = np.maximum(slope, SMALLEST_SCALE), np.asarray(offset, np.float64)
    return StepMaps(exact, slope, start, lower, upper, zero_point, minimum, maximum, reach)


def requantize(maps: StepMaps | None, exact: Exact, accumulators: Array, dtype: np.dtype[np.generic]) -> Array:
    """Apply a proven map, or the integer rule if there is none; while something records, the rule itself.

    Args:
        maps: Result of `fit_step_map` for this very rule, or None.
        exact: the rule.
        accumulators: exact integers [..., O] in float32, float64 or int64.
        dtype: Storage type of the result.

    Returns:
        Quantized values [..., O].
    """
    if recorder() is not None:
        return exact(accumulators.astype(np.int64)).astype(dtype)
    step_map = None if maps is None else maps.serving(accumulators.size)
    return _by_rule(exact, accumulators, dtype) if step_map is None else apply(step_map, accumulators, dtype)


def _by_rule(exact: Exact, accumulators: Array, dtype: np.dtype[np.generic]) -> Array:
    result = np.empty(accumulators.shape, dtype)
    if result.size == 0:
        return result
    channels = accumulators.shape[-1]
    flat, out = accumulators.reshape(-1), result.reshape(-1)
    rows = max(1, BLOCK // channels) * channels
    for i in range(0, flat.size, rows):
        block = flat[i : i + rows].reshape(-1, channels).astype(np.int64)
        np.copyto(out[i : i + rows], exact(block).reshape(-1), casting="unsafe")
    return result

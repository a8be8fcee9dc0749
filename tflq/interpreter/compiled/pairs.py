"""Tables of two operands as sums, of which a vector is computed at once.

clip(rint(a_1 x_1 + a_2 x_2 + b)), or if the rule rounds its operands first, clip(rint(a (t_1 + t_2) + b)) with t =
rint(c x + d). The factors are searched from tables, whatever rule filled them, and are valid for all pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Doubles, Reals, Singles

MARGIN = 1e-9
"""Least distance from a half: far more than float64 loses below 2^10."""
SINGLE_MARGINS = (3e-5, 1e-5, 3e-6)
"""The same for float32: its three roundings of sums below 2^8, by 2^-17 or less, seldom add up."""
NEAR = 0.1
"""Pairs that far from a half need no look while factors are searched."""
MOST_CUTS = 400
SLOPE_STEPS = 120
"""Thirds taken off the range of a slope: down to neighboring float64."""
MOST_FACTOR = 1 << 20
MOST_OFFSET = 1 << 29
LARGEST_TERM = 1 << 20
"""A quarter of what the C reads off a float32's lowest bits."""


@dataclass(frozen=True)
class AffinePair:
    """y = clip(rint(first * x_1 + (second * x_2 + offset)), minimum, maximum), in float64, or float32 if is_single."""

    first: float
    second: float
    offset: float
    minimum: int
    maximum: int
    is_single: bool

    @property
    def is_bounded(self) -> bool:
        """Whether the clamped sum is within 2^30 for all pairs."""
        return abs(self.first) + abs(self.second) < MOST_FACTOR and abs(self.offset) < MOST_OFFSET

    def of(self, first: Doubles, second: Doubles) -> Doubles:
        """Return y of quantized values, as kernels.c computes it."""
        kind = np.float32 if self.is_single else np.float64
        a, b, c = (kind(value) for value in (self.first, self.second, self.offset))
        found: Doubles = np.rint(first.astype(kind) * a + (second.astype(kind) * b + c))
        return np.clip(found, self.minimum, self.maximum).astype(np.float64)


Line = tuple[float, float]
"""Slope and offset."""


@dataclass(frozen=True)
class RoundedPair:
    """y = clip(rint(total(t_1 + t_2)), minimum, maximum), t_i = rint(term_i(x_i)), lines a * x + b in float32.

    Attributes:
        terms: lines of both operands.
        total: line of their sum.
        minimum: least result.
        maximum: largest result.
    """

    terms: tuple[Line, Line]
    total: Line
    minimum: int
    maximum: int

    @property
    def is_bounded(self) -> bool:
        """The same."""
        slope, offset = self.total
        return 2 * LARGEST_TERM * abs(slope) < MOST_OFFSET and abs(offset) < MOST_OFFSET

    def of(self, first: Doubles, second: Doubles) -> Doubles:
        """Return y of elements, as kernels.c computes it."""
        t_1, t_2 = (np.rint(_on(line, x)) for line, x in zip(self.terms, (first, second), strict=True))
        return np.clip(np.rint(_on(self.total, t_1 + t_2)), self.minimum, self.maximum).astype(np.float64)


def _on(line: Line, x: Reals) -> Singles:
    return np.asarray(x.astype(np.float32) * np.float32(line[0]) + np.float32(line[1]))


def rounded_pair(
    results: Doubles, first: Doubles, second: Doubles, terms: tuple[Doubles, Doubles]
) -> RoundedPair | None:
    """Return the lines of a table that is a function of a sum of terms, or None if the search fails.

    Args:
        results: elements [256, 256] of all pairs.
        first: elements of the first operand [256].
        second: Elements of the second operand [256].
        terms: integers [256] that each operand adds to the sum.
    """
    totals, at = np.unique(terms[0][:, None] + terms[1], return_index=True)
    if max(float(np.abs(t).max()) for t in (*terms, totals)) > LARGEST_TERM:
        return None
    low, high = int(results.min()), int(results.max())
    lines = [
        _line(first, terms[0], np.inf),
        _line(second, terms[1], np.inf),
        _line(totals, results.reshape(-1)[at], high, low),
    ]
    if None in lines:
        return None
    one, two, total = (line for line in lines if line is not None)
    pair = RoundedPair((one, two), total, low, high)
    return pair if np.array_equal(pair.of(first[:, None], second), results) else None


def _line(x: Doubles, results: Doubles, high: float, low: float = -np.inf) -> Line | None:
    """Return the line farthest from all halves with clip(rint(a x + b), low, high) = results; None if there is none.

    For a slope the offsets form an interval; its length is a concave function of the slope.
    """
    up, down = results < high, results > low
    inside = up & down
    if inside.sum() < 2:
        return None

    def offsets(slope: float) -> tuple[float, float]:
        rest = results - slope * x
        return float((rest[down] - 0.5).max()), float((rest[up] + 0.5).min())

    center = float(np.polyfit(x[inside], results[inside], 1)[0])
    reach = 2 / float(np.ptp(x[inside]))
    least, most = center - reach, center + reach
    for _ in range(SLOPE_STEPS):
        third = (most - least) / 3
        (low_1, high_1), (low_2, high_2) = offsets(least + third), offsets(most - third)
        if high_1 - low_1 < high_2 - low_2:
            least += third
        else:
            most -= third
    slope = (least + most) / 2
    bottom, top = offsets(slope)
    return (slope, (bottom + top) / 2) if bottom < top else None


def affine_pair(results: Doubles, first: Doubles, second: Doubles) -> AffinePair | None:
    """Return the factors of a table, or None if the search fails.

    Args:
        results: elements [256, 256] of all pairs: quantized values, or their distance from the least.
        first: elements of the first operand [256].
        second: Elements of the second operand [256].
    """
    low, high = results.min(), results.max()
    inside = (results > low) & (results < high)
    rows = np.stack(np.broadcast_arrays(first[:, None] / 128, second[None] / 128, 1.0), axis=-1)
    if inside.sum() < 256:
        return None
    center = np.linalg.lstsq(rows[inside], results[inside], rcond=None)[0]
    up, down = results < high, results > low  # y + 1/2 bounds the real value from above, y - 1/2 from below
    sides = np.concatenate([rows[up], -rows[down]])
    bounds = np.concatenate([results[up] + 0.5, 0.5 - results[down]])
    near = np.abs(bounds - sides @ center) < NEAR
    for margin in (*SINGLE_MARGINS, MARGIN):
        found = _feasible(sides[near], bounds[near] - margin, center)
        if found is not None:
            pair = AffinePair(found[0] / 128, found[1] / 128, found[2], int(low), int(high), margin > MARGIN)
            if np.array_equal(pair.of(first[:, None], second), results):
                return pair
    return None


def _feasible(sides: Doubles, bounds: Doubles, center: Doubles) -> Doubles | None:
    """Return a point with sides @ point <= bounds, by the ellipsoid method with deep cuts; None after MOST_CUTS.

    Source: Groetschel, Lovasz, Schrijver, Geometric Algorithms and Combinatorial Optimization, chapter 3.
    """
    shape = np.diag(np.full(3, 0.02**2))
    if not bounds.size:
        return center
    for _ in range(MOST_CUTS):
        excess = sides @ center - bounds
        worst = int(np.argmax(excess))
        if excess[worst] <= 0:
            return center
        side = sides[worst]
        length = float(np.sqrt(side @ shape @ side))
        depth = float(excess[worst]) / length
        if depth >= 1:  # no point of the ellipsoid meets this side
            return None
        step = shape @ side / length
        center = center - (1 + 3 * depth) / 4 * step
        shape = 9 / 8 * (1 - depth**2) * (shape - (1 + 3 * depth) / (2 * (1 + depth)) * np.outer(step, step))
    return None

"""Tables of two operands as clip(rint(a_1 x_1 + a_2 x_2 + b)): sums, of which a vector is computed at once.

The factors are searched from the table itself, whatever rule filled it, and hold for all its pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
MARGIN = 1e-9
"""Least distance from a half: far more than float64 loses below 2^10."""
NEAR = 0.1
"""Pairs that far from a half need no look while factors are searched."""
MOST_CUTS = 400


@dataclass(frozen=True)
class AffinePair:
    """y = clip(rint(first * x_1 + second * x_2 + offset), minimum, maximum), in float64."""

    first: float
    second: float
    offset: float
    minimum: int
    maximum: int


def affine_pair(results: Doubles, first: Doubles, second: Doubles) -> AffinePair | None:
    """Return the factors of a table, or None where none were found.

    Args:
        results: quantized values [256, 256] of all pairs.
        first: quantized values of the first operand [256].
        second: of the second.
    """
    low, high = results.min(), results.max()
    inside = (results > low) & (results < high)
    rows = np.stack(np.broadcast_arrays(first[:, None] / 128, second[None] / 128, 1.0), axis=-1)
    if inside.sum() < 256:
        return None
    centre = np.linalg.lstsq(rows[inside], results[inside], rcond=None)[0]
    up, down = results < high, results > low  # y + 1/2 bounds the real number from above, y - 1/2 from below
    sides = np.concatenate([rows[up], -rows[down]])
    bounds = np.concatenate([results[up] + 0.5, 0.5 - results[down]]) - MARGIN
    near = np.abs(bounds - sides @ centre) < NEAR
    found = _feasible(sides[near], bounds[near], centre)
    if found is None or np.any(sides @ found > bounds):
        return None
    return AffinePair(found[0] / 128, found[1] / 128, found[2], int(low), int(high))


def _feasible(sides: Doubles, bounds: Doubles, centre: Doubles) -> Doubles | None:
    """Return a point with sides @ point <= bounds, by the ellipsoid method with deep cuts; None after MOST_CUTS.

    Source: Groetschel, Lovasz, Schrijver, Geometric Algorithms and Combinatorial Optimization, chapter 3.
    """
    shape = np.diag(np.full(3, 0.02**2))
    if not bounds.size:
        return centre
    for _ in range(MOST_CUTS):
        excess = sides @ centre - bounds
        worst = int(np.argmax(excess))
        if excess[worst] <= 0:
            return centre
        side = sides[worst]
        length = float(np.sqrt(side @ shape @ side))
        depth = float(excess[worst]) / length
        if depth >= 1:  # no point of the ellipsoid meets this side
            return None
        step = shape @ side / length
        centre = centre - (1 + 3 * depth) / 4 * step
        shape = 9 / 8 * (1 - depth**2) * (shape - (1 + 3 * depth) / (2 * (1 + depth)) * np.outer(step, step))
    return None

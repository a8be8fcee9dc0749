"""Operators of two 8-bit inputs: a table of all 65536 pairs, or float32 factors proven to give the same."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.graph import Array, DType
from tflq.interpreter.lookup_tables import all_codes

_ATTEMPTS = 300
_SEED = 20260401


def look_up_pairs(pairs: Array, x: Array, y: Array) -> Array:
    """Return pairs[256 raw(x) + raw(y)], x and y broadcast against each other.

    Args:
        pairs: T8[65536].
        x: 8-bit integers.
        y: 8-bit integers, of the same rank.
    """
    index = x.view(np.uint8).astype(np.uint16) << np.uint16(8)
    return np.asarray(np.take(pairs, index | y.view(np.uint8), mode="clip"))


@dataclass(frozen=True)
class AffinePair:
    """rint(clip(x a + y b + c, minimum, maximum)), each operation in float32, equal to a table for all 65536 pairs.

    Attributes:
        a: factor of the first input.
        b: factor of the second.
        c: constant.
        minimum: smallest code.
        maximum: largest code.
        dtype: of the result.
    """

    a: np.float32
    b: np.float32
    c: np.float32
    minimum: np.float32
    maximum: np.float32
    dtype: DType


def run_affine_pair(pair: AffinePair, x: Array, y: Array) -> Array:
    """Compute the affine map, x and y broadcast against each other."""
    total = _sum(pair, x.astype(np.float32), y.astype(np.float32))
    return total.astype(pair.dtype.storage)


def find_affine_pair(
    pairs: Array, dtype: DType, start: tuple[float, float, float], bounds: tuple[int, int]
) -> AffinePair | None:
    """Search float32 factors near `start` that give `pairs` exactly; None where there are none.

    Nothing is assumed about the size of errors: a candidate counts only if all 65536 pairs agree. Candidates are
    tried on the pairs next to a rounding threshold first, where nearly all of them fail.

    Args:
        pairs: T8[65536], as for `look_up_pairs`.
        dtype: of inputs and result.
        start: a, b, c as real numbers.
        bounds: smallest and largest code.
    """
    x, y = (axis.reshape(-1).astype(np.float32) for axis in np.meshgrid(*[all_codes(dtype)] * 2, indexing="ij"))
    expected = pairs.astype(np.float32)
    exact = x.astype(np.float64) * start[0] + y.astype(np.float64) * start[1] + start[2]
    close = np.abs(exact - np.floor(exact) - 0.5) < 1e-3
    random = np.random.default_rng(_SEED)
    for attempt in range(_ATTEMPTS):
        pair = _candidate(start, bounds, dtype, random if attempt else None)
        if not np.array_equal(_sum(pair, x[close], y[close]), expected[close]):
            continue
        if np.array_equal(_sum(pair, x, y), expected):
            return pair
    return None


def _candidate(
    start: tuple[float, float, float], bounds: tuple[int, int], dtype: DType, random: np.random.Generator | None
) -> AffinePair:
    a, b, c = (np.float32(value) for value in start)
    if random is not None:
        a, b = (f + np.float32(random.integers(-4, 5)) * np.spacing(f) for f in (a, b))
        c = np.float32(start[2] + random.uniform(-1.5e-5, 1.5e-5) * max(1.0, abs(start[2])))
    return AffinePair(a, b, c, np.float32(bounds[0]), np.float32(bounds[1]), dtype)


def _sum(pair: AffinePair, x: NDArray[np.float32], y: NDArray[np.float32]) -> NDArray[np.float32]:
    y = y * pair.b
    total = x * pair.a
    total = np.add(total, y, out=total if total.shape == np.broadcast_shapes(total.shape, y.shape) else None)
    total += pair.c
    np.clip(total, pair.minimum, pair.maximum, out=total)
    return np.rint(total, out=total)

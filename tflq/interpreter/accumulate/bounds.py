"""How large an accumulator can become, and which type holds every partial sum of it exactly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tflq.graph import Array

FLOAT32_EXACT = 1 << 24
"""float32 holds all integers up to this magnitude."""
FLOAT64_EXACT = 1 << 53
"""float64 holds all integers up to this magnitude."""


def exact_dtype(magnitude: int) -> np.dtype[np.generic]:
    """Return the fastest type in which sums of integer products stay exact, in any order, fused or not.

    Every partial sum is an integer of at most `magnitude`: float32 below 2^24, float64 below 2^53, else int64.

    Args:
        magnitude: sum of |weight| * max|x| over the taps of the worst channel.
    """
    if magnitude < FLOAT32_EXACT:
        return np.dtype(np.float32)
    return np.dtype(np.float64 if magnitude < FLOAT64_EXACT else np.int64)


def worst_magnitude(weights: Array, input_magnitude: int) -> int:
    """Return max over channels of sum|w| * input_magnitude, and at least input_magnitude.

    Args:
        weights: integers [O, ...], output channel first.
        input_magnitude: largest |x| among stored quantized values, the padding value included.
    """
    if weights.size == 0:
        return input_magnitude
    sums = np.abs(weights.astype(np.int64)).reshape(weights.shape[0], -1).sum(axis=1)
    return max(int(sums.max()), 1) * input_magnitude


def accumulator_range(weights: Array, minimum: int, maximum: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the smallest and the largest accumulator of each channel, over all inputs in [minimum, maximum].

    lowest[o] = sum over taps of min(w * minimum, w * maximum); highest likewise. Both are reached.

    Args:
        weights: integers [O, ...], output channel first.
        minimum: smallest stored quantized value, padding value included.
        maximum: largest.

    Returns:
        int64[O] twice.
    """
    flat = weights.astype(np.int64).reshape(weights.shape[0], -1)
    positive = np.maximum(flat, 0).sum(axis=1)
    negative = np.minimum(flat, 0).sum(axis=1)
    return positive * minimum + negative * maximum, positive * maximum + negative * minimum

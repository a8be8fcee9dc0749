"""Indices that are data: checks of their range, and how sampled indices meet shared data."""

from __future__ import annotations

import numpy as np

from tflq.arrays import Integers
from tflq.errors import InputError
from tflq.graph import Array


def checked_indices(indices: Array, size: int, what: str) -> Integers:
    """Return indices as int64, all in 0..size-1.

    Args:
        indices: [S or 1, ...].
        size: number of places.
        what: the axis that they index, for the message.

    Raises:
        InputError: one is out of range; names sample, place and value.
    """
    checked = indices.astype(np.int64)
    wrong = (checked < 0) | (checked >= size)
    if wrong.any():
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise InputError(
            f"sample {place[0]}: the index at {place[1:]} is {int(checked[place])}; {what} has 0..{size - 1}"
        )
    return checked


def sample_index(array: Array, rank: int) -> Integers:
    """Return which sample of `array` belongs to each sample: int64[S or 1, 1, ...] of that rank, to broadcast."""
    return np.arange(array.shape[0]).reshape(-1, *(1,) * (rank - 1))


def equal_samples(*arrays: Array) -> list[Array]:
    """Return views that all have the largest number of samples: shared ones are repeated."""
    samples = max(x.shape[0] for x in arrays)
    return [x if x.shape[0] == samples else np.broadcast_to(x, (samples, *x.shape[1:])) for x in arrays]

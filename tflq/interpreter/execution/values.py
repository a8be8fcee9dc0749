"""Values of tensors over many samples: one array, or one array a sample if their shapes differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers
from tflq.graph import Array


@dataclass(frozen=True, eq=False)
class Ragged:
    """A tensor with a shape that differs between samples.

    Attributes:
        samples: one array [1, *shape] a sample.
    """

    samples: tuple[Array, ...]


Value = Array | Ragged
"""T[S, *shape], T[1, *shape] where all samples share it, or Ragged."""


def one_sample(value: Value, sample: int) -> Array:
    """Return one sample's array [1, *shape]."""
    if isinstance(value, Ragged):
        return value.samples[sample]
    return value if value.shape[0] == 1 else value[sample : sample + 1]


def bytes_of(value: Value) -> int:
    """Return the bytes of all samples together."""
    return value.nbytes if isinstance(value, np.ndarray) else sum(array.nbytes for array in value.samples)


def select(value: Value, samples: Integers) -> Value:
    """Return the value of some samples; a shared value stays shared."""
    if isinstance(value, Ragged):
        return stack([value.samples[int(s)] for s in samples])
    return value if value.shape[0] == 1 else value[samples]


def stack(samples: Sequence[Array]) -> Value:
    """Return arrays [1, *shape] as one value: an array if the shapes are equal."""
    if len(samples) == 1:
        return samples[0]
    if all(a.shape == samples[0].shape for a in samples):
        return np.concatenate(samples)
    return Ragged(tuple(samples))


def merge(parts: Sequence[tuple[Integers, Value]], count: int) -> Value:
    """Put the values of disjoint groups of samples together again.

    Args:
        parts: samples of a group, and its value.
        count: number of all samples.
    """
    if len(parts) == 1:
        return parts[0][1]
    rows: list[Array] = [parts[0][1]] * count  # type: ignore[list-item]  # every entry is replaced below
    for samples, value in parts:
        for position, s in enumerate(samples):
            rows[int(s)] = one_sample(value, position)
    return stack(rows)


def for_all_samples(value: Value, count: int) -> Array:
    """Return a value as users see it: T[S, *shape], or an object array [S] of arrays if the shapes differ."""
    if isinstance(value, Ragged):
        result = np.empty(count, object)
        for s, array in enumerate(value.samples):
            result[s] = array[0]
        return result
    return value if value.shape[0] == count else np.broadcast_to(value, (count, *value.shape[1:]))


def concatenate(chunks: Sequence[Array]) -> Array:
    """Join the arrays of successive chunks of samples; chunks of different shapes become an object array."""
    if len(chunks) == 1:
        return chunks[0]
    if all(c.shape[1:] == chunks[0].shape[1:] and c.dtype == chunks[0].dtype for c in chunks):
        return np.concatenate(chunks)
    rows = [row for chunk in chunks for row in chunk]
    result = np.empty(len(rows), object)
    for s, row in enumerate(rows):
        result[s] = row
    return result

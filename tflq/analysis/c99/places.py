"""Places of elements in memory, as functions of loops."""

from __future__ import annotations

import numpy as np

from tflq.analysis.c99.expression import Axis, Index, Term
from tflq.errors import UnsupportedError
from tflq.graph import Array
from tflq.interpreter.recording.primitive import Ids


def index_of(places: Ids, axes: tuple[Axis, ...]) -> Index:
    """Write places as a start and one term a loop.

    Raises:
        UnsupportedError: they are no such sum.
    """
    if places.size == 0:
        raise UnsupportedError("a tensor without elements")
    start = int(places[(0,) * places.ndim])
    terms: list[Term] = []
    total: Ids = np.full((1,) * places.ndim, start, np.int64)
    for n, axis in enumerate(axes):
        line = np.moveaxis(places, n, 0).reshape(axis.size, -1)[:, 0] - start
        shape = [1] * places.ndim
        shape[n] = axis.size
        total = total + line.reshape(shape)
        if axis.size == 1 or not line.any():
            continue
        stride = int(line[1])
        is_even = np.array_equal(line, stride * np.arange(axis.size))
        terms.append(Term(axis, stride if is_even else 0, None if is_even else line))
    if not np.array_equal(np.broadcast_to(total, places.shape), places):
        raise UnsupportedError("elements are moved to places that no sum over the axes describes")
    return Index(start, tuple(terms))


def varying(ids: Ids, axes: tuple[Axis, ...]) -> tuple[Ids, tuple[Axis, ...]]:
    """Leave out the loops along which numbers do not change."""
    kept: list[Axis] = []
    for axis in axes:
        n = len(kept)
        first = np.take(ids, 0, n)
        if axis.size > 1 and not (ids == np.expand_dims(first, n)).all():
            kept.append(axis)
        else:
            ids = first
    return ids, tuple(kept)


def strides_of(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return how many elements lie between neighbours along each axis."""
    return tuple(int(np.prod(shape[n + 1 :], dtype=np.int64)) for n in range(len(shape)))


def cut_of(records: Array) -> tuple[int, int]:
    """Return the axis along which the operation changes at the fewest places, and the first of them."""
    found = []
    for n in range(records.ndim):
        rows = np.moveaxis(records, n, 0).reshape(records.shape[n], -1)
        changes = np.flatnonzero((rows[1:] != rows[:-1]).any(axis=1)) + 1
        if changes.size:
            found.append((changes.size, n, int(changes[0])))
    _, axis, at = min(found)
    return axis, at

"""Faults of a tiled device: rows of the input that were not renewed, and rows beyond the border of a tile.

An output row depends on the input rows of its windows. The dependence is measured: if an input row is replaced, the
output rows that read it change. Only input rows that every differing output row reads can be the cause.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import log2

import numpy as np
from numpy.typing import NDArray

from tflq.diagnosis.hypotheses.hypothesis import NotApplicableError, Prediction
from tflq.diagnosis.hypotheses.suspect import Suspect
from tflq.diagnosis.place import Part, hits_along, name_axes
from tflq.graph import Array

_FAR = 4
_MOST_ROWS = 256


def stale_rows(s: Suspect) -> Iterator[Prediction]:
    """Input row i reads as row j, at most 4 rows away: a line buffer was not advanced."""
    for part, t, axis, reads in _axes(s):
        x = s.values[t]
        rows = [i for i in range(x.shape[axis]) if reads[i][part.indices].all()]
        for i in rows:
            for j in (k for far in range(1, _FAR + 1) for k in (i - far, i + far) if 0 <= k < x.shape[axis]):
                made = x.copy()
                np.moveaxis(made, axis, 0)[i] = np.moveaxis(x, axis, 0)[j]
                words = f"input's {part.name} {i} reads as {part.name} {j}: a line buffer was not advanced"
                yield Prediction(words, s.run({t: made}), bits=log2(x.shape[axis]) + log2(2 * _FAR))


def halo(s: Suspect) -> Iterator[Prediction]:
    """Output rows at the border of a tile read the zero point or 0 beyond it."""
    for part, t, axis, reads in _axes(s):
        x = s.values[t]
        size = x.shape[axis]
        inside = part.spread(s.got.shape)
        read = [i for i in range(size) if reads[i][part.indices].any()]
        if not read:
            continue
        for fill in dict.fromkeys((s.zero_point(t), 0)):
            for words, lost in _beyond(part.name, read, size):
                made = x.copy()
                np.moveaxis(made, axis, 0)[lost] = fill
                value = "the zero point" if fill == s.zero_point(t) else str(fill)
                changed = np.where(inside, s.run({t: made}), s.sound)
                verb = "read" if len(part.indices) > 1 else "reads"
                cause = f"{part.short} {verb} {value} for {words}: a tile lacks the data beyond its border"
                yield Prediction(cause, changed, bits=part.bits + log2(size))


def _beyond(name: str, read: list[int], size: int) -> Iterator[tuple[str, slice]]:
    """Yield the input rows that a tile may lack: all of the windows, or the rows on one side of a border in them."""
    alone = len(read) == 1
    yield f"input {name} {read[0]}" if alone else f"input {name}s {read[0]}..{read[-1]}", slice(read[0], read[-1] + 1)
    for border in range(read[0] + 1, read[-1] + 1):
        yield f"input {name}s from {border} on", slice(border, size)
        yield f"input {name}s before {border}", slice(0, border)


def _axes(s: Suspect) -> Iterator[tuple[Part, int, int, list[NDArray[np.bool_]]]]:
    """Yield each named axis with the layer's input, the input's axis, and the output rows that read each input row."""
    if len(s.inputs) != 1 or not s.nodes:
        raise NotApplicableError
    t = s.inputs[0]
    x = s.values[t]
    names = {name: axis for axis, name in name_axes(x.shape)}
    for part in s.place.parts:
        axis = names.get(part.name)
        if part.name in ("row", "column", "position") and axis is not None and 1 < x.shape[axis] <= _MOST_ROWS:
            key = (t, axis, part.axis)
            if key not in s.dependences:
                s.dependences[key] = _measure_dependence(s, *key)
            yield part, t, axis, s.dependences[key]


def _measure_dependence(s: Suspect, t: int, axis: int, output_axis: int) -> list[NDArray[np.bool_]]:
    """Return, for each input row, the output rows that change with it: bool[K] of one sample."""
    one = s.part([0])
    x = one.values[t]
    rng = np.random.default_rng(0)
    reads = []
    for i in range(x.shape[axis]):
        made = np.array(x[:1])
        row = np.moveaxis(made, axis, 0)[i]
        np.moveaxis(made, axis, 0)[i] = _noise(row, rng)
        changed = np.asarray(one.run({t: made}) != one.sound)
        reads.append(hits_along(changed, output_axis))
    return reads


def _noise(row: Array, rng: np.random.Generator) -> Array:
    if row.dtype.kind in "iu":
        kind = np.iinfo(row.dtype.name)
        return rng.integers(kind.min, kind.max + 1, row.shape).astype(row.dtype)
    real = row.astype(np.float64)
    return np.asarray((real + rng.normal(0, 1 + np.abs(real).max(initial=0), row.shape)).astype(row.dtype))

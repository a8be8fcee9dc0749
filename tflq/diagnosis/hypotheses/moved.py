"""Correct results at a wrong place: other samples, a shifted image, rows of another tile, memory of another tensor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import log2

import numpy as np

from tflq.diagnosis.form import find_copy
from tflq.diagnosis.hypotheses.hypothesis import Prediction
from tflq.diagnosis.hypotheses.suspect import Suspect, like
from tflq.diagnosis.place import list_ranges, name_axes
from tflq.units import short

_REACH = 2
_KEY = 16
"""Bytes by which a stretch of memory is looked up in another tensor."""


def sample_order(s: Suspect) -> Iterator[Prediction]:
    """g[i] = own[p(i)] for a permutation p of the samples."""
    known = {a.tobytes(): i for i, a in enumerate(s.own)}
    order = [known.get(np.ascontiguousarray(a).tobytes()) for a in s.got]
    if None in order or len(known) < len(s.own) or order == list(range(len(s.own))):
        return
    moved = [i for i, j in enumerate(order) if i != j]
    numbers = [s.first + i for i in moved]
    if len(moved) == 2:
        words = f"samples {numbers[0]} and {numbers[1]} are exchanged in this tensor"
    else:
        words = "samples are in another order: " + ", ".join(
            f"{s.first + i} holds {s.first + int(order[i] or 0)}" for i in moved[:6]
        )
    yield Prediction(words, s.own[np.array(order, int)], bits=len(moved) * log2(len(s.own)))


def shifted(s: Suspect) -> Iterator[Prediction]:
    """g[y, x] = r[y - dy, x - dx]; the dy rows and dx columns at the border are not predicted."""
    axes = {name: axis for axis, name in name_axes(s.sound.shape)}
    if "row" not in axes:
        return
    rows, columns = axes["row"], axes["column"]
    for dy, dx in product(range(-_REACH, _REACH + 1), repeat=2):
        if (dy, dx) == (0, 0) or abs(dy) >= s.sound.shape[rows] or abs(dx) >= s.sound.shape[columns]:
            continue
        unknown = np.zeros(s.sound.shape[1:], bool)
        for axis, k in ((rows, dy), (columns, dx)):
            if k:
                np.moveaxis(unknown, axis - 1, 0)[slice(0, k) if k > 0 else slice(k, None)] = True
        made = np.where(unknown, s.got, np.roll(s.sound, (dy, dx), (rows, columns)))
        yield Prediction(
            f"results are moved by {_steps(dy, dx)}: the crop or the address is off", made, unknown=unknown
        )


def _steps(dy: int, dx: int) -> str:
    parts = []
    if dy:
        parts.append(f"{abs(dy)} row{'s' * (abs(dy) > 1)} {'down' if dy > 0 else 'up'}")
    if dx:
        parts.append(f"{abs(dx)} column{'s' * (abs(dx) > 1)} to the {'right' if dx > 0 else 'left'}")
    return " and ".join(parts)


def copied(s: Suspect) -> Iterator[Prediction]:
    """Rows, columns or channels contain the expected values k indices before: a tile or buffer was not renewed."""
    for part in s.place.parts:
        if part.name == "sample":
            continue
        k = find_copy(s.sound, s.got, s.wrong, part.axis)
        if k is None:
            continue
        side = "before" if k > 0 else "after"
        far = f"{abs(k)} {part.name}s {side}" if abs(k) > 1 else f"the {part.name} {side}"
        words = (
            f"{part.name}s {list_ranges(part.indices)} contain the results of {far}: a tile or buffer was not renewed"
        )
        made = np.where(part.spread(s.wrong.shape), np.roll(s.sound, k, part.axis), s.sound)
        yield Prediction(words, made, bits=part.bits + log2(part.size))


def overwritten(s: Suspect) -> Iterator[Prediction]:
    """A stretch of memory contains a stretch of another tensor: two buffers overlap."""
    g = np.ascontiguousarray(s.got).reshape(len(s.got), -1)
    low, high = s.place.first, s.place.last + 1
    size, item = g.shape[1], g.dtype.itemsize
    if high - low >= size or (high - low) * item < _KEY:
        return
    contents = {
        t: [a.tobytes() for a in array]
        for t, array in s.others.items()
        if len(array) == len(g) and not s.graph.tensors[t].is_constant
    }
    for begin in dict.fromkeys(_starts(low, s)):
        wanted = [a[begin:high].tobytes() for a in g]
        for t, content in contents.items():
            at = _find(wanted, content)
            if at is None:
                continue
            made = np.ascontiguousarray(s.sound).reshape(g.shape).copy()
            made[:, begin:high] = g[:, begin:high]
            name = short(s.graph.tensors[t].name)
            span = f"bytes {begin * item} to {high * item - 1} of {size * item}"
            words = f"{span} contain the bytes of '{name}' from {at} on: the buffers overlap"
            bits = 2 * log2(size) + log2(max(len(content[0]), 2)) + log2(len(s.others))
            yield Prediction(words, like(made, s), bits=bits)
            return


def _starts(low: int, s: Suspect) -> Iterator[int]:
    """Yield the first differing element, then earlier ones: overwritten elements may be equal by chance."""
    yield low
    row = int(np.prod(s.got.shape[-2:])) if s.got.ndim > 2 else s.got.shape[-1]
    yield low // row * row
    yield from range(low - 1, max(low - 8, -1), -1)


def _find(wanted: Sequence[bytes], content: Sequence[bytes]) -> int | None:
    """Return the offset at which each sample's content has the wanted bytes, at least 16; None if there is none."""
    at = content[0].find(wanted[0]) if len(wanted[0]) >= _KEY else -1
    while at >= 0:
        if all(c[at : at + len(w)] == w for c, w in zip(content, wanted, strict=True)):
            return at
        at = content[0].find(wanted[0], at + 1)
    return None

"""The operator reads its input at another place: windows, tables, pixels of a resize; or fills borders otherwise."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tflq.analysis.diagnosis.hypothesis import Prediction
from tflq.analysis.diagnosis.suspect import LINEAR, Suspect
from tflq.graph import Array

_ENTRIES = (
    (1, "one entry too far up"),
    (255, "one entry too far down"),
    (128, "with the other sign of its index"),
)
_OFF = (
    (1, 0, "one row too low"),
    (-1, 0, "one row too high"),
    (0, 1, "one column too far right"),
    (0, -1, "one column too far left"),
    (1, 1, "one row too low and one column too far right"),
    (-1, -1, "one row too high and one column too far left"),
)


def window(s: Suspect) -> Iterator[Prediction]:
    """The windows of a convolution or pool stand one row or column off; the zero point follows from the border."""
    if not s.inputs or not (s.operator in LINEAR or s.operator in ("mean", "reduce") or "pool" in s.operator):
        return
    t = s.inputs[0]
    x, affine = s.values[t], s.encoding(s.inputs[0])
    if x.ndim != 5:
        return
    fill = 0 if affine is None else affine.zero_point[0]
    for rows, columns, words in _OFF:
        made = x
        for axis, k in ((2, rows), (3, columns)):
            if k:
                made = np.roll(made, -k, axis)
                np.moveaxis(made, axis, 0)[-1 if k > 0 else 0] = fill
        yield Prediction(f"windows stand {words}", s.run({t: made}))
    for axis, name in ((2, "row"), (3, "column")):
        if x.shape[axis] > 1:
            before = np.moveaxis(x, axis, 0)[-2]
            for words, last in (
                ("not read: it counts as 0", np.full_like(before, fill)),
                ("read as the one before it", before),
            ):
                made = x.copy()
                np.moveaxis(made, axis, 0)[-1] = last
                yield Prediction(f"last {name} of the input is {words}", s.run({t: made}))


def table(s: Suspect) -> Iterator[Prediction]:
    """A function of one 8-bit input is read from its table at another index."""
    if s.operator in LINEAR or len(s.inputs) != 1 or len(s.nodes) != 1:
        return
    x = s.values[s.inputs[0]]
    if x.shape != s.got.shape or x.dtype.itemsize != 1 or x.dtype.kind not in "iu":
        return
    for k, words in _ENTRIES:
        moved = (np.ascontiguousarray(x).view(np.uint8) + np.uint8(k)).view(x.dtype)
        yield Prediction(f"table of {s.operator} is read {words}", s.run({s.inputs[0]: moved}))


def sampling(s: Suspect) -> Iterator[Prediction]:
    """A resize takes the centres of pixels or the corners otherwise, or is of the other kind."""
    if not s.operator.startswith("resize"):
        return
    attributes = s.graph.nodes[s.main].attributes
    own = (bool(attributes.get("align_corners")), bool(attributes.get("half_pixel_centers")))
    for corners, centres, words in (
        (False, False, "takes pixels at their upper left corners"),
        (True, False, "aligns the corners of both images"),
        (False, True, "takes pixels at their centres"),
    ):
        if (corners, centres) != own:
            changed = {"align_corners": corners, "half_pixel_centers": centres}
            yield Prediction(f"resize {words}", s.rerun(attributes=changed))
    for operator in ("resize_bilinear", "resize_nearest_neighbor"):
        if operator != s.operator:
            yield Prediction(f"resize is {operator.replace('_', ' ')}", s.rerun(operator=operator))


def filling(s: Suspect) -> Iterator[Prediction]:
    """A PAD fills with another number: what does not follow from the input is the filling."""
    if "pad" not in s.operator or not s.inputs or s.got.dtype.kind not in "iu":
        return
    t = s.inputs[0]
    x = s.values[t]
    kind = np.iinfo(x.dtype.name)
    is_filling = s.run({t: np.full_like(x, kind.min)}) == s.run({t: np.full_like(x, kind.max)})
    if not is_filling.any():
        return
    affine = s.encoding(t)
    zero = 0 if affine is None else int(affine.zero_point[0])
    for v in dict.fromkeys((0, zero, kind.min, kind.max, *_most_common(s.got[is_filling]))):
        if kind.min <= v <= kind.max:
            yield Prediction(f"filling is {v}", np.where(is_filling, np.asarray(v, s.sound.dtype), s.sound))


def _most_common(values: Array) -> list[int]:
    found, counts = np.unique(values, return_counts=True)
    return [int(found[np.argmax(counts)])]

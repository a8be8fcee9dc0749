"""The weights of a layer are of another type, order or width, or some of them do not count."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tflq.analysis.diagnosis.constants import channel_axis, with_data
from tflq.analysis.diagnosis.hypothesis import Prediction
from tflq.analysis.diagnosis.memory import halves_exchanged
from tflq.analysis.diagnosis.suspect import Suspect
from tflq.graph import Array


def weights(s: Suspect) -> Iterator[Prediction]:
    """The weights are zero, of another type or order in memory, mirrored, or those of a neighbour."""
    if s.weights is None:
        return
    tensor = s.graph.tensors[s.weights]
    w = np.asarray(tensor.data)
    encoding = s.encoding(s.weights)
    zero = 0 if encoding is None or encoding.is_per_axis else int(encoding.zero_point[0])
    made: list[tuple[str, Array]] = [("are all zero", np.full_like(w, zero)), ("are stored as 0", w * 0)]
    if w.dtype.itemsize == 1:
        made.append(("are read as the other 8-bit type", (w.view(np.uint8) ^ np.uint8(128)).view(w.dtype)))
        flat = np.ascontiguousarray(w).reshape(-1)
        for width in (2, 4, 8):
            if flat.size % width == 0:
                turned = np.ascontiguousarray(flat.reshape(-1, width)[:, ::-1]).reshape(w.shape)
                made.append((f"have the other byte order in words of {8 * width} bits", turned))
        made.append(("have their halves of 4 bits exchanged", halves_exchanged(w)))
    if w.ndim == 4:
        if w.shape[1] == w.shape[2]:
            made.append(("have rows and columns of the kernel exchanged", w.transpose(0, 2, 1, 3)))
        made.append(("are turned by 180 degrees", w[:, ::-1, ::-1]))
        made.append(("have the kernel's rows in reverse order", w[:, ::-1]))
        made.append(("have the kernel's columns in reverse order", w[:, :, ::-1]))
        for words, order in (
            ("OIHW", (0, 3, 1, 2)),
            ("HWIO", (1, 2, 3, 0)),
            ("IHWO", (3, 1, 2, 0)),
            ("HWOI", (1, 2, 0, 3)),
            ("OWHI", (0, 2, 1, 3)),
        ):
            shape = tuple(w.shape[i] for i in order)
            made.append(
                (f"are stored as {words}, read as OHWI", np.ascontiguousarray(w.transpose(order)).reshape(w.shape))
            )
            back = np.argsort(order)
            made.append((f"are stored as OHWI, read as {words}", w.reshape(shape).transpose(back)))
    if w.ndim == 2:
        made.append(("are stored as [inputs, outputs]", np.ascontiguousarray(w.T).reshape(w.shape)))
        made.append(("are read as [inputs, outputs]", w.reshape(w.shape[::-1]).T))
        made += _flatten_orders(s, w)
    axis = channel_axis(s, w)
    made.append(("have their output channels in reverse order", np.flip(w, axis)))
    made.append(("are those of the channel before", np.roll(w, 1, axis)))
    made.append(("are those of the channel behind", np.roll(w, -1, axis)))
    last = w.ndim - 1 if axis != w.ndim - 1 else None
    if last is not None and w.shape[last] > 1:
        made.append(("have their input channels in reverse order", np.flip(w, last)))
        made.append(("are off by one input channel", np.roll(w, 1, last)))
    made += _degraded(w, zero)
    for words, array in made:
        yield Prediction(f"weights {words}", with_data(s, s.weights, tensor, np.ascontiguousarray(array)))


def taps(s: Suspect) -> Iterator[Prediction]:
    """A row or column of the kernel does not count, or the last input channels do not: a loop ends early.

    Where products are left out and not weights, the zero point that the bias holds for them stays.
    """
    if s.weights is None:
        return
    tensor = s.graph.tensors[s.weights]
    w = np.asarray(tensor.data)
    encoding = s.encoding(s.weights)
    zero = np.asarray(0 if encoding is None or encoding.is_per_axis else encoding.zero_point[0], w.dtype)
    places: list[tuple[str, int, slice]] = []
    if w.ndim == 4:
        for axis, name in ((1, "row"), (2, "column")):
            if w.shape[axis] > 1:
                places += [(f"first {name} of the kernel does", axis, slice(0, 1))]
                places += [(f"last {name} of the kernel does", axis, slice(-1, None))]
    depth = w.shape[-1] if channel_axis(s, w) == 0 else 1
    counts = (1, *(depth % k for k in (2, 4, 8, 16, 32, 64, 128)), depth // 4, depth // 2)
    for n in dict.fromkeys(c for c in counts if 0 < c < depth):
        name = f"last {n} of {depth} input channels do" if n > 1 else "last input channel does"
        places.append((name, -1, slice(-n, None)))
    for words, axis, lost in places:
        made = w.copy()
        np.moveaxis(made, axis, 0)[lost] = zero
        yield Prediction(f"{words} not count", with_data(s, s.weights, tensor, made))
        if axis == -1:
            yield Prediction(f"{words} not count, but in the zero point's share of the bias", _without(s, lost, depth))


def _without(s: Suspect, lost: slice, depth: int) -> Array | None:
    """Return the layer without the products of some input channels; what the bias holds for them stays."""
    linear = s.linear
    if linear is None or linear.x.shape[-1] != depth:
        return None
    x, pad = linear.x.copy(), linear.pad_value or 0
    x[..., lost] = 0
    missing = linear.accumulate(linear.x, pad).astype(np.int64) - linear.accumulate(x, pad).astype(np.int64)
    return s.after_main(linear.result(linear.totals - missing))


def window_side(s: Suspect) -> Iterator[Prediction]:
    """The odd row and column of the padding stand on the other side."""
    t = s.graph.nodes[s.main].inputs[0] if s.graph.nodes[s.main].inputs else None
    if s.weights is None or t is None or t not in s.values or s.values[t].ndim != 5:
        return
    tensor = s.graph.tensors[s.weights]
    w = np.asarray(tensor.data)
    if w.ndim != 4:
        return
    x = s.values[t]
    for words, axes in (("rows and columns", (1, 2)), ("rows", (1,)), ("columns", (2,))):
        turned = replace(tensor, data=np.ascontiguousarray(np.flip(w, axes)))
        image = tuple(a + 1 for a in axes)
        found = s.rerun({s.weights: turned}, values={t: np.ascontiguousarray(np.flip(x, image))})
        yield Prediction(
            f"padding of the {words} stands on the other side", None if found is None else np.flip(found, image)
        )


def _degraded(w: Array, zero: int) -> list[tuple[str, Array]]:
    """Return weights of fewer bits, or negated."""
    if w.dtype.itemsize > 1 or w.dtype.kind not in "iu":
        return []
    kind, wide = np.iinfo(w.dtype.name), w.astype(np.int64) - zero
    made = [("are negated", -wide)]
    for bits in (7, 6, 5, 4, 3, 2):
        k = 8 - bits
        made.append((f"have {bits} bits, the lowest {k} cut", wide >> k << k))
        made.append((f"have {bits} bits, rounded", (wide + (1 << (k - 1))) >> k << k))
        half = 1 << (bits - 1)
        made.append((f"are saturated to {bits} bits", np.clip(wide, -half, half - 1)))
        made.append((f"have their lowest {bits} bits alone", ((wide + half) & (2 * half - 1)) - half))
    return [(words, np.clip(a + zero, kind.min, kind.max).astype(w.dtype)) for words, a in made]


def _flatten_orders(s: Suspect, w: Array) -> list[tuple[str, Array]]:
    """Return weights of a layer behind a flattened image whose order of axes is another one."""
    writers = s.graph.producers()
    t = s.graph.nodes[s.main].inputs[0]
    for _ in range(3):
        shape = s.graph.tensors[t].shape
        if len(shape) == 4 and shape[1] * shape[2] > 1 and shape[3] > 1 and int(np.prod(shape)) == w.shape[1]:
            image = w.reshape(len(w), *shape[1:])
            height, width, depth = shape[1:]
            return [
                ("expect the flattened image as CHW", image.transpose(0, 3, 1, 2).reshape(w.shape)),
                (
                    "are stored for CHW, and get HWC",
                    w.reshape(len(w), depth, height, width).transpose(0, 2, 3, 1).reshape(w.shape),
                ),
            ]
        if t not in writers or not s.graph.nodes[writers[t]].inputs:
            return []
        t = s.graph.nodes[writers[t]].inputs[0]
    return []

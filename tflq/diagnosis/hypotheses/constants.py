"""One change in the constants of a layer: bias, scales, weights of another type or order, memory erased."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tflq.diagnosis.hypotheses.hypothesis import Prediction
from tflq.diagnosis.hypotheses.memory import halves_exchanged
from tflq.diagnosis.hypotheses.suspect import Suspect
from tflq.graph import Affine, Array, Tensor

_PAGES = (64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)
_FOLDING = {"tpu_mlir": -1, "aipu": 1}
"""Arithmetics with a stored bias that includes the input's zero point times the sum of the weights, and its sign."""


def bias(s: Suspect) -> Iterator[Prediction]:
    """The bias is missing, twice there, that of a neighbor, of another byte order, or cut."""
    if s.bias is None:
        return
    tensor = s.graph.tensors[s.bias]
    stored = np.asarray(tensor.data)
    folded = _folded(s, stored)
    plain = stored - folded
    for words, change in (
        ("is missing", lambda b: b * 0),
        ("counts twice", lambda b: b * 2),
        ("is that of the channel before", lambda b: np.roll(b, 1)),
        ("is that of the channel after", lambda b: np.roll(b, -1)),
        ("is in reverse order", lambda b: b[::-1]),
        ("has the wrong sign", lambda b: -b),
        ("is that of the first channel in all", lambda b: np.full_like(b, b[0])),
        ("has the other byte order", _swapped),
        ("is cut to 16 bits", lambda b: _cut(b, 16)),
        ("is saturated to 16 bits", lambda b: _saturated(b, 16)),
        ("is cut to 8 bits", lambda b: _cut(b, 8)),
        ("is saturated to 8 bits", lambda b: _saturated(b, 8)),
        ("is shifted to the left by 1", lambda b: b * 2 if b.dtype.kind == "f" else b << 1),
        ("is shifted to the right by 1", lambda b: b / 2 if b.dtype.kind == "f" else b >> 1),
    ):
        made = np.add(change(plain), folded).astype(stored.dtype)
        yield Prediction(f"bias {words}", with_data(s, s.bias, tensor, made))
        if np.any(folded):
            made = np.asarray(change(stored)).astype(stored.dtype)
            yield Prediction(f"bias {words}, including its folded zero point", with_data(s, s.bias, tensor, made))
    if np.any(folded):
        yield Prediction("bias lacks the folded zero point", with_data(s, s.bias, tensor, plain.astype(stored.dtype)))
        twice = (stored + folded).astype(stored.dtype)
        yield Prediction("bias contains the input's zero point twice", with_data(s, s.bias, tensor, twice))


def scales(s: Suspect) -> Iterator[Prediction]:
    """The scales of the channels are exchanged, or one is used for all."""
    if s.weights is None:
        return
    encoding = s.encoding(s.weights)
    if encoding is None or encoding.scale.size < 2:
        return
    k = encoding.scale
    for words, made in (
        ("are from the channel before", np.roll(k, 1)),
        ("are from the channel after", np.roll(k, -1)),
        ("are in reverse order", k[::-1]),
        ("are one for all: the largest", np.full_like(k, k.max())),
        ("are one for all: the first channel's", np.full_like(k, k[0])),
        ("are one for all: the last channel's", np.full_like(k, k[-1])),
        ("are one for all: the smallest", np.full_like(k, k.min())),
        ("are one for all: their mean", np.full_like(k, k.mean())),
    ):
        yield Prediction(f"weights' scales {words}", s.rerun(_scaled(s, np.asarray(made, k.dtype))))


def borders(s: Suspect) -> Iterator[Prediction]:
    """The scale of the input or output is missing or that of the other."""
    t_in, t_out = (s.graph.nodes[s.main].inputs or (None,))[0], s.graph.nodes[s.main].outputs[0]
    if t_in is None or s.encoding(t_in) is None or s.encoding(t_out) is None:
        return
    a, b = s.graph.tensors[t_in], s.graph.tensors[t_out]
    one = np.ones(1, np.float32)
    exchanged = {t_in: _rescaled(a, b.affine.scale), t_out: _rescaled(b, a.affine.scale)}
    for words, tensors in (
        ("input's scale is the output's", {t_in: _rescaled(a, b.affine.scale)}),
        ("output's scale is the input's", {t_out: _rescaled(b, a.affine.scale)}),
        ("input's scale is left out", {t_in: _rescaled(a, one)}),
        ("output's scale is left out", {t_out: _rescaled(b, one)}),
        ("scales of input and output are exchanged", exchanged),
    ):
        yield Prediction(words, s.rerun(tensors))


def erased(s: Suspect) -> Iterator[Prediction]:
    """A stretch of the weights' memory is erased (0xFF) or zero: one page, or whole channels."""
    if s.weights is None:
        return
    tensor = s.graph.tensors[s.weights]
    w = np.ascontiguousarray(tensor.data)
    content = w.reshape(-1).view(np.uint8)
    axis = channel_axis(s, w)
    per = content.size // w.shape[axis] if axis == 0 else 0
    wrong = s.wrong_channels
    spans: list[tuple[int, int]] = []
    if per and wrong:
        spans.append((wrong[0] * per, (wrong[-1] + 1) * per))
        for page in _PAGES:
            for start in range(wrong[0] * per // page * page, min((wrong[-1] + 1) * per, content.size), page):
                stop = min(start + page, content.size)
                touched = (start // per, (stop - 1) // per)
                if touched[0] <= wrong[0] and touched[1] >= wrong[-1] and stop - start < content.size:
                    spans.append((start, stop))
        spans += [(start, content.size) for start, _ in spans] + [(0, stop) for _, stop in spans]
    elif axis != 0:
        pages = [p for p in _PAGES if p < content.size]
        spans += [(i, min(i + p, content.size)) for p in pages for i in range(0, content.size, p)][:64]
    for start, stop in dict.fromkeys(spans):
        for fill, word in ((0xFF, "erased (0xFF)"), (0, "zero")):
            made = content.copy()
            made[start:stop] = fill
            words = f"weights' bytes {start}..{stop - 1} ({(stop - start) / 1024:.4g} KiB) are {word}"
            yield Prediction(words, with_data(s, s.weights, tensor, made.view(w.dtype).reshape(w.shape)))


def channel_axis(s: Suspect, w: Array) -> int:
    """Return the axis of the weights that counts output channels."""
    depthwise = s.graph.nodes[s.main].operator == "depthwise_conv_2d"
    return w.ndim - 1 if depthwise else 0


def _folded(s: Suspect, stored: Array) -> Array:
    sign = _FOLDING.get(s.graph.nodes[s.main].arithmetic or "", 0)
    if not sign or s.weights is None or s.linear is None:
        return np.zeros_like(stored)
    zero = s.zero_point(s.graph.nodes[s.main].inputs[0])
    sums = s.linear.weights.reshape(len(s.linear.weights), -1).sum(axis=1)
    return np.asarray(sign * zero * sums).reshape(stored.shape).astype(stored.dtype)


def _scaled(s: Suspect, scale: Array) -> dict[int, Tensor]:
    """Return weights and bias with other scales, the bias as product of the input's and the weights'."""
    assert s.weights is not None
    tensor = s.graph.tensors[s.weights]
    tensors = {s.weights: _rescaled(tensor, scale)}
    if s.bias is not None and s.encoding(s.bias) is not None:
        b = s.graph.tensors[s.bias]
        tensors[s.bias] = _rescaled(b, b.affine.scale * np.divide(scale, tensor.affine.scale))
    return tensors


def _rescaled(tensor: Tensor, scale: Array) -> Tensor:
    affine: Affine = tensor.affine
    return replace(tensor, quantization=replace(affine, scale=np.asarray(scale).astype(affine.scale.dtype)))


def with_data(s: Suspect, t: int, tensor: Tensor, data: Array) -> Array | None:
    """Return the layer with other numbers in one of its constants."""
    return s.rerun({t: replace(tensor, data=data)})


def _swapped(b: Array) -> Array:
    return b if b.dtype.kind == "f" else b.byteswap()


def _cut(b: Array, bits: int) -> Array:
    return b if b.dtype.kind == "f" else b.astype(np.dtype(f"int{bits}"))


def _saturated(b: Array, bits: int) -> Array:
    return b if b.dtype.kind == "f" else np.clip(b, -(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def weights(s: Suspect) -> Iterator[Prediction]:
    """The weights are zero, of another type or order in memory, mirrored, or from a neighbor."""
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
    made.append(("are from the channel before", np.roll(w, 1, axis)))
    made.append(("are from the channel after", np.roll(w, -1, axis)))
    last = w.ndim - 1 if axis != w.ndim - 1 else None
    if last is not None and w.shape[last] > 1:
        made.append(("have their input channels in reverse order", np.flip(w, last)))
        made.append(("are off by one input channel", np.roll(w, 1, last)))
    made += _degraded(w, zero)
    for words, array in made:
        yield Prediction(f"weights {words}", with_data(s, s.weights, tensor, np.ascontiguousarray(array)))


def taps(s: Suspect) -> Iterator[Prediction]:
    """A row or column of the kernel does not count, or the last input channels do not: a loop ends early.

    If products are omitted instead of weights, the bias keeps the zero point folded for these weights.
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
            words = f"{words} not count, except in the zero point's share of the bias"
            yield Prediction(words, _without(s, lost, depth))


def _without(s: Suspect, lost: slice, depth: int) -> Array | None:
    """Return the layer without the products of some input channels; the bias keeps their folded zero point."""
    linear = s.linear
    if linear is None or linear.x.shape[-1] != depth:
        return None
    x, pad = linear.x.copy(), linear.pad_value or 0
    x[..., lost] = 0
    missing = linear.accumulate(linear.x, pad).astype(np.int64) - linear.accumulate(x, pad).astype(np.int64)
    return s.after_main(linear.result(linear.totals - missing))


def window_side(s: Suspect) -> Iterator[Prediction]:
    """The odd row and column of the padding are on the other side."""
    t = s.graph.nodes[s.main].inputs[0] if s.graph.nodes[s.main].inputs else None
    if s.weights is None or t is None or t not in s.values or s.values[t].ndim != 5 or s.got.ndim != 5:
        return
    tensor = s.graph.tensors[s.weights]
    w = np.asarray(tensor.data)
    if w.ndim != 4:
        return
    x = s.values[t]
    for words, axes in (("rows and columns", (1, 2)), ("rows", (1,)), ("columns", (2,))):
        turned = replace(tensor, data=np.ascontiguousarray(np.flip(w, axes)))
        image = tuple(a + 1 for a in axes)
        mirrored = s.rerun({s.weights: turned}, values={t: np.ascontiguousarray(np.flip(x, image))})
        yield Prediction(
            f"padding of the {words} is on the other side", None if mirrored is None else np.flip(mirrored, image)
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
        made.append((f"keep only their lowest {bits} bits", ((wide + half) & (2 * half - 1)) - half))
    return [(words, np.clip(a + zero, kind.min, kind.max).astype(w.dtype)) for words, a in made]


def _flatten_orders(s: Suspect, w: Array) -> list[tuple[str, Array]]:
    """Return weights of a layer after a flattened image with another order of axes."""
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

"""The right numbers, stored otherwise: another order of axes, bytes or bits, another address, longer rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

import numpy as np

from tflq.diagnosis.hypotheses.hypothesis import Prediction
from tflq.diagnosis.hypotheses.suspect import Suspect, like
from tflq.graph import Array

_OFFSETS = (*range(1, 17), 32, 64, 128)
"""Elements by which an address may be off."""
_BLOCKS = (2, 4, 8, 16, 32, 64)
"""Channels that are adjacent in memory."""
_ALIGNMENTS = (4, 8, 16, 32, 64, 128)
"""Bytes to multiples of which rows are filled up."""


def axes(s: Suspect) -> Iterator[Prediction]:
    """G = the same values, their axes in another order in memory, or one of them reversed."""
    shape = s.own.shape[1:]
    names = "NHWC" if len(shape) == 4 else "NABCDEFG"[: len(shape)]
    letters = "".join(letter for letter, n in zip(names, shape, strict=True) if n != 1)
    core = s.own.reshape(len(s.own), *[n for n in shape if n != 1])
    if core.ndim < 2 or len(shape) < 3:
        return
    for order in permutations(range(1, core.ndim)):
        if order != tuple(range(1, core.ndim)):
            stored = "".join(letters[i - 1] for i in order)
            yield Prediction(f"axes are stored as {stored}, read as {letters}", like(core.transpose(0, *order), s))
    words = {"H": "rows", "W": "columns", "C": "channels"}
    for i, letter in enumerate(letters, 1):
        yield Prediction(f"{words.get(letter, letter)} are in reverse order", like(np.flip(core, i), s))
    if letters[:2] == "HW":
        yield Prediction("image is turned by 180 degrees", like(core[:, ::-1, ::-1], s))


def halves(s: Suspect) -> Iterator[Prediction]:
    """G = the same values, the two halves of an axis exchanged."""
    for axis, name in ((-1, "channels"), (-3, "rows"), (-2, "columns")):
        if s.own.ndim + axis >= 1 and s.own.shape[axis] % 2 == 0 and s.own.shape[axis] > 1:
            yield Prediction(f"two halves of the {name} are exchanged", np.roll(s.own, s.own.shape[axis] // 2, axis))


def words(s: Suspect) -> Iterator[Prediction]:
    """G = the same bytes in words of 16, 32 or 64 bits of the other byte order."""
    flat = np.ascontiguousarray(s.own).reshape(len(s.own), -1).view(np.uint8)
    for width in (2, 4, 8):
        if flat.shape[1] % width == 0:
            turned = np.ascontiguousarray(flat.reshape(len(flat), -1, width)[..., ::-1]).reshape(flat.shape)
            yield Prediction(f"{8 * width}-bit words have the other byte order", like(turned.view(s.own.dtype), s))


def sign_bit(s: Suspect) -> Iterator[Prediction]:
    """G = own with the highest bit changed: uint8 written as int8 or the reverse."""
    if s.own.dtype.kind in "iu" and s.own.dtype.itemsize == 1:
        turned = np.ascontiguousarray(s.own).view(np.uint8) ^ np.uint8(128)
        yield Prediction("values are 128 off: the dump is the other 8-bit type", turned.view(s.own.dtype))


def address(s: Suspect) -> Iterator[Prediction]:
    """G = own read from an address that is off by some elements; elements from outside are not judged."""
    flat = s.own.reshape(len(s.own), -1)
    g = s.got.reshape(flat.shape)
    row = s.own.shape[-1] * (s.own.shape[-2] if s.own.ndim > 2 else 1)
    for k in dict.fromkeys((*_OFFSETS, s.own.shape[-1], row)):
        for sign in (1, -1):
            if 0 < k < flat.shape[1] // 2:
                moved = np.roll(flat, sign * k, 1)
                outside = slice(0, k) if sign > 0 else slice(flat.shape[1] - k, None)
                moved[:, outside] = g[:, outside]
                side = "after" if sign > 0 else "before"
                words = f"values are {k} elements {side} their places: an address is off"
                unknown = np.zeros(flat.shape[1], bool)
                unknown[outside] = True
                yield Prediction(words, like(moved, s), unknown=unknown.reshape(s.got.shape[1:]))


def blocks(s: Suspect) -> Iterator[Prediction]:
    """G = own with its channels in blocks of k: [C/k, H, W, k] in memory; or interleaved, [k, C/k] as [C/k, k]."""
    channels = s.own.shape[-1]
    flat = s.own.reshape(len(s.own), -1, channels)
    for k in _BLOCKS:
        if channels % k or channels == k:
            continue
        cut = flat.reshape(len(flat), -1, channels // k, k)
        if flat.shape[1] > 1:
            words = f"channels are stored in blocks of {k}: [C/{k}, H, W, {k}]"
            yield Prediction(words, like(cut.transpose(0, 2, 1, 3), s))
            back = flat.reshape(len(flat), channels // k, -1, k).transpose(0, 2, 1, 3)
            yield Prediction(f"values are read as blocks of {k} channels, but stored as HWC", like(back, s))
        yield Prediction(f"channels are interleaved: every {k}th is stored together", like(cut.swapaxes(2, 3), s))
        back = flat.reshape(len(flat), -1, k, channels // k).swapaxes(2, 3)
        words = f"channels that should be adjacent are stored at a distance of {channels // k}"
        yield Prediction(words, like(back, s))


def pitch(s: Suspect) -> Iterator[Prediction]:
    """G = own, its rows padded by p elements in the writer or in the reader; the padding is not judged."""
    if s.own.ndim < 4:
        return
    height, size = s.own.shape[-3], int(np.prod(s.own.shape[-2:]))
    rows, flat = s.own.reshape(len(s.own), -1, size), s.got.reshape(len(s.got), -1)
    aligned = [-size % (a // s.own.dtype.itemsize or 1) for a in _ALIGNMENTS]
    for p in dict.fromkeys((*aligned, s.own.shape[-1], 2 * s.own.shape[-1], *range(1, 17))):
        if not 0 < p < size or height < 2:
            continue
        wide = np.zeros((*rows.shape[:2], size + p), rows.dtype)
        wide[..., :size] = rows
        is_value = np.zeros(wide.shape[1:], bool)
        is_value[:, :size] = True
        read = wide.reshape(len(wide), -1)[:, : flat.shape[1]]
        held = is_value.reshape(-1)[: flat.shape[1]]
        words = f"rows are written {p} elements longer than they are read"
        yield Prediction(words, like(np.where(held, read, flat), s), unknown=~held.reshape(s.got.shape[1:]))
        source = (np.arange(rows.shape[1])[:, None] * (size + p) + np.arange(size)).reshape(-1)
        inside = source < flat.shape[1]
        own = s.own.reshape(flat.shape)[:, np.minimum(source, flat.shape[1] - 1)]
        words = f"rows are written {p} elements shorter than they are read"
        yield Prediction(words, like(np.where(inside, own, flat), s), unknown=~inside.reshape(s.got.shape[1:]))


def bits(s: Suspect) -> Iterator[Prediction]:
    """G = the layer's integers with bits lost, saturated earlier, exchanged or turned."""
    r = np.ascontiguousarray(s.sound)
    if r.dtype.kind not in "iu" or r.dtype.itemsize > 2:
        return
    width = 8 * r.dtype.itemsize
    kind, wide = np.iinfo(r.dtype.name), r.astype(np.int64)
    for k in (1, 2, 3, 4):
        count = width - k
        low, high = (-(1 << (count - 1)), (1 << (count - 1)) - 1) if kind.min else (0, (1 << count) - 1)
        for words, values in (
            (f"have lost their lowest {f'{k} bits' if k > 1 else 'bit'}", wide >> k << k),
            (f"are saturated to {count} bits, {low}..{high}", np.clip(wide, low, high)),
            (f"wrap at {count} bits", (wide - low & ((1 << count) - 1)) + low),
        ):
            yield Prediction(f"values {words}", values.astype(r.dtype))
    if kind.min:
        yield Prediction("values have lost their sign: |x|", np.clip(np.abs(wide), 0, kind.max).astype(r.dtype))
        yield Prediction("values are negated", np.clip(-wide, kind.min, kind.max).astype(r.dtype))
    if width == 8:
        yield Prediction("halves of 4 bits are exchanged in every value", halves_exchanged(r))
        turned = np.packbits(np.unpackbits(r.view(np.uint8)[..., None], axis=-1)[..., ::-1], axis=-1)[..., 0]
        yield Prediction("bits are in reverse order in every value", turned.view(r.dtype))


def halves_exchanged(array: Array) -> Array:
    """Return bytes with their halves of 4 bits exchanged."""
    u = array.view(np.uint8)
    return np.asarray(((u << np.uint8(4)) | (u >> np.uint8(4))).view(array.dtype))

"""The dump is something else, correctly computed: another tensor, sample, order of bytes, or a part never written."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from tflq.analysis.diagnosis.hypothesis import Prediction
from tflq.analysis.diagnosis.suspect import Suspect, unequal
from tflq.analysis.ulps import distance
from tflq.graph import Array
from tflq.units import short

Mask = NDArray[np.bool_]

_LEAST_PART = 64
"""A result that stops before this part of it says nothing of where it stops."""
_SHIFTS = (1, -1, 2, -2, 3, -3)
_OFFSETS = (*range(1, 17), 32, 64, 128)
"""Elements by which an address may be off."""


def other_tensor(s: Suspect) -> Iterator[Prediction]:
    """G = another tensor's values, of the network's own run or, where those differ, of the dump."""
    order = s.graph.producers()
    for t, array in s.others.items():
        if array[0].size != s.got[0].size or array.dtype != s.got.dtype:
            continue
        name = short(s.graph.tensors[t].name)
        held = s.seen.get(t)
        is_exchanged = held is not None and np.array_equal(held.reshape(s.own.shape), s.own)
        more = ", and that one its own: both are exchanged" if is_exchanged else ""
        yield Prediction(f"dump holds the values of '{name}'{more}", _like(array, s))
        is_earlier = order.get(t, -1) < order.get(s.tensor, -1)
        if held is not None and is_earlier and unequal(held, array).any():
            yield Prediction(f"dump holds what it has for '{name}', too", _like(held, s))


def last_places(s: Suspect) -> Iterator[Prediction]:
    """G = the layer's floats, computed by another library: |g - y| <= 2^-20 of the sample's largest |y|.

    Two orders of the same sum, or two functions exp, differ by some units in the last place (2^-24 of a number in
    float32); float16 and float64 hold numbers of their own and are judged as the layer stores them.
    """
    if s.got.dtype != np.float32 or s.sound.dtype != np.float32:
        return
    axes = tuple(range(1, s.sound.ndim))
    with np.errstate(invalid="ignore"):
        got, sound = s.got.astype(np.float64), s.sound.astype(np.float64)
        apart, bound = np.abs(got - sound), 2.0**-20 * np.abs(sound).max(axis=axes, keepdims=True, initial=0)
        near = apart <= bound
    most = int(distance(s.got, s.sound)[near & s.wrong].max(initial=0))
    words = f"numbers differ in the last places of float32 alone, by at most {most} units: another library's floats"
    yield Prediction(words, np.where(near, s.got, s.sound))


def other_sample(s: Suspect) -> Iterator[Prediction]:
    """g[i] = own[i - k]; the samples at the end that wrap around are not judged."""
    n = len(s.own)
    for k in _SHIFTS:
        if abs(k) < n:
            side = "before" if k > 0 else "behind"
            where = f"the sample {side}" if abs(k) == 1 else f"the sample {abs(k)} places {side}"
            yield Prediction(f"dump holds {where}", np.roll(s.own, k, 0), slice(k, None) if k > 0 else slice(None, k))
    if n > 2:
        yield Prediction("dump holds the samples in reverse order", s.own[::-1])


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
            yield Prediction(f"axes are stored as {stored}, read as {letters}", _like(core.transpose(0, *order), s))
    words = {"H": "rows", "W": "columns", "C": "channels"}
    for i, letter in enumerate(letters, 1):
        yield Prediction(f"{words.get(letter, letter)} stand in reverse order", _like(np.flip(core, i), s))
    if letters[:2] == "HW":
        yield Prediction("image is turned by 180 degrees", _like(core[:, ::-1, ::-1], s))


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
            yield Prediction(f"{8 * width}-bit words have the other byte order", _like(turned.view(s.own.dtype), s))


def sign_bit(s: Suspect) -> Iterator[Prediction]:
    """G = own with the highest bit changed: uint8 written as int8 or the reverse."""
    if s.own.dtype.kind in "iu" and s.own.dtype.itemsize == 1:
        turned = np.ascontiguousarray(s.own).view(np.uint8) ^ np.uint8(128)
        yield Prediction("values are 128 off: the dump is the other 8-bit type", turned.view(s.own.dtype))


def address(s: Suspect) -> Iterator[Prediction]:
    """G = own read from an address that is off by some elements; what comes from outside is not judged."""
    flat = s.own.reshape(len(s.own), -1)
    g = s.got.reshape(flat.shape)
    row = s.own.shape[-1] * (s.own.shape[-2] if s.own.ndim > 2 else 1)
    for k in dict.fromkeys((*_OFFSETS, s.own.shape[-1], row)):
        for sign in (1, -1):
            if 0 < k < flat.shape[1] // 2:
                moved = np.roll(flat, sign * k, 1)
                outside = slice(0, k) if sign > 0 else slice(flat.shape[1] - k, None)
                moved[:, outside] = g[:, outside]
                side = "behind" if sign > 0 else "in front of"
                yield Prediction(f"values stand {k} elements {side} their places: an address is off", _like(moved, s))


def constant(s: Suspect) -> Iterator[Prediction]:
    """G = one value everywhere: never written."""
    first = s.got.reshape(-1)[0]
    yield Prediction(f"result is {first} everywhere: it was never written", np.full_like(s.got, first))


def cut_short(s: Suspect) -> Iterator[Prediction]:
    """G = r up to an element; behind it a constant, or the same in every sample: never written, or not again."""
    flat, g = s.sound.reshape(len(s.got), -1), s.got.reshape(len(s.got), -1)
    wrong = unequal(g, flat).any(axis=0)
    first = int(np.argmax(wrong))
    if not wrong.any() or first == 0:
        return
    last = g[0, -1]
    begin = first
    while begin > 0 and (g[:, begin - 1] == last).all():
        begin -= 1
    made = flat.copy()
    if (g[:, first:] == last).all():
        made[:, first:] = last
        yield Prediction(f"result stops at element {begin} of {flat.shape[1]}: behind it stands {last}", _like(made, s))
    elif len(g) > 1 and first > flat.shape[1] // _LEAST_PART and (g[:, first:] == g[:1, first:]).all():
        made[:, first:] = g[0, first:]
        words = f"result stops at element {first} of {flat.shape[1]}: behind it every sample holds the same"
        yield Prediction(words, _like(made, s))


def parts(s: Suspect) -> Iterator[Prediction]:
    """Rows, columns, channels or a stretch of memory hold another sample or another tensor; the rest is r."""
    for name, region in _regions(s):
        for p in _of_region(s, name, region):
            yield p
            assert p.array is not None
            if not unequal(s.got[p.samples], p.array[p.samples]).any():
                return


def _of_region(s: Suspect, name: str, region: Mask) -> Iterator[Prediction]:
    for k in _SHIFTS[:4]:
        if abs(k) < len(s.own):
            side = "before" if k > 0 else "behind"
            far = "" if abs(k) == 1 else f" {abs(k)} places"
            made = np.where(region, np.roll(s.own, k, 0), s.sound)
            kept = slice(k, None) if k > 0 else slice(None, k)
            yield Prediction(f"{name} are those of the sample{far} {side}", made, kept)
    for t, array in s.others.items():
        if array.shape == s.got.shape and array.dtype == s.got.dtype:
            other = short(s.graph.tensors[t].name)
            yield Prediction(f"{name} are those of '{other}'", np.where(region, array, s.sound))
    if s.got.ndim == 5:
        for axis, what in ((1, "row"), (2, "column")):
            for k in (1, -1):
                moved = np.where(region, np.roll(s.sound, k, axis + 1), s.sound)
                yield Prediction(f"{name} are off by one {what}", moved)


def _regions(s: Suspect) -> Iterator[tuple[str, Mask]]:
    """Yield the least rows, columns, channels and stretch that hold all that differs, if they are not everything."""
    wrong: Mask = s.wrong
    names = {wrong.ndim - 1: "channels", wrong.ndim - 2: "columns", wrong.ndim - 3: "rows"}
    for axis, name in sorted(names.items()):
        if axis < 1 or (axis < wrong.ndim - 1 and wrong.ndim < 4):
            continue
        found = np.flatnonzero(wrong.any(axis=tuple(i for i in range(wrong.ndim) if i != axis)))
        low, high = int(found[0]), int(found[-1])
        if high - low + 1 < wrong.shape[axis]:
            region = np.zeros(wrong.shape[axis], bool)
            region[low : high + 1] = True
            shape = [1] * wrong.ndim
            shape[axis] = -1
            yield f"{name} {low}..{high}", np.broadcast_to(region.reshape(shape), wrong.shape)
    flat = np.asarray(wrong.reshape(len(wrong), -1).any(axis=0))
    found = np.flatnonzero(flat)
    low, high = int(found[0]), int(found[-1])
    if high - low + 1 < len(flat):
        region = np.zeros(len(flat), bool)
        region[low : high + 1] = True
        yield f"elements {low}..{high}", np.broadcast_to(region.reshape(wrong.shape[1:]), wrong.shape)


def _like(array: Array, s: Suspect) -> Array:
    return np.ascontiguousarray(array).reshape(s.got.shape)

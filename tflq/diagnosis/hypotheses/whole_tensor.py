"""Dumps of another, correctly computed value: another tensor, another sample, or a part never written.

The set of differing elements also shows channels that are permuted, doubled, dead, too high or too low.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import log2

import numpy as np
from numpy.typing import NDArray

from tflq.diagnosis.difference import distance
from tflq.diagnosis.hypotheses.evidence import CODE
from tflq.diagnosis.hypotheses.hypothesis import Prediction
from tflq.diagnosis.hypotheses.suspect import Suspect, like, unequal
from tflq.diagnosis.place import hits_along, log2_choose
from tflq.units import range_list, short

Mask = NDArray[np.bool_]

_LEAST_PART = 64
"""A result that differs within its first 1/64 is not tested for a rest that is equal in every sample."""
_SHIFTS = (1, -1, 2, -2, 3, -3)


def other_tensor(s: Suspect) -> Iterator[Prediction]:
    """G = another tensor's values, of the network's own run or, if these differ, of the dump."""
    order = s.graph.producers()
    for t, array in s.others.items():
        if array[0].size != s.got[0].size or array.dtype != s.got.dtype:
            continue
        name = short(s.graph.tensors[t].name)
        held = s.seen.get(t)
        is_exchanged = held is not None and np.array_equal(held.reshape(s.own.shape), s.own)
        more = ", and vice versa: both are exchanged" if is_exchanged else ""
        yield Prediction(f"dump contains the values of '{name}'{more}", like(array, s))
        is_earlier = order.get(t, -1) < order.get(s.tensor, -1)
        if held is not None and is_earlier and unequal(held, array).any():
            yield Prediction(f"dump contains the same values as for '{name}'", like(held, s))


def last_places(s: Suspect) -> Iterator[Prediction]:
    """G = the layer's floats, computed by another library: |g - y| <= 2^-20 of the sample's largest |y|.

    Two orders of the same sum, or two functions exp, differ by some ULP (2^-24 of a number in float32); float16 and
    float64 have other steps and are judged by the layer's stored values.
    """
    if s.got.dtype != np.float32 or s.sound.dtype != np.float32:
        return
    axes = tuple(range(1, s.sound.ndim))
    with np.errstate(invalid="ignore"):
        got, sound = s.got.astype(np.float64), s.sound.astype(np.float64)
        apart, bound = np.abs(got - sound), 2.0**-20 * np.abs(sound).max(axis=axes, keepdims=True, initial=0)
        near = apart <= bound
    most = int(distance(s.got, s.sound)[near & s.wrong].max(initial=0))
    words = f"values differ only by float32 rounding, by at most {most} ULP: another library's floats"
    yield Prediction(words, np.where(near, s.got, s.sound))


def other_sample(s: Suspect) -> Iterator[Prediction]:
    """g[i] = own[j], or own[i - k]; the samples at the end that wrap around are not judged, at least two are."""
    n = len(s.own)
    for j in range(n if n > 1 else 0):
        yield Prediction(f"dump contains sample {s.first + j} in every sample", np.repeat(s.own[j : j + 1], n, 0))
    for k in _SHIFTS:
        if abs(k) < max(2, n - 1):
            side = "before" if k > 0 else "after"
            where = f"the sample {side}" if abs(k) == 1 else f"the sample {abs(k)} places {side}"
            kept = slice(k, None) if k > 0 else slice(None, k)
            yield Prediction(f"dump contains {where}", np.roll(s.own, k, 0), kept)
    if n > 2:
        yield Prediction("dump contains the samples in reverse order", s.own[::-1])


def constant(s: Suspect) -> Iterator[Prediction]:
    """G = one value everywhere: never written."""
    first = s.got.reshape(-1)[0]
    yield Prediction(f"result is {first} everywhere: it was never written", np.full_like(s.got, first), bits=CODE)


def limits(s: Suspect) -> Iterator[Prediction]:
    """G = clip(r, low + z, high + z): the result is clamped to its type before the zero point z is added."""
    z = s.zero_point(s.tensor)
    if s.sound.dtype.kind not in "iu" or not z:
        return
    kind = np.iinfo(s.sound.dtype.name)
    low, high = max(kind.min, kind.min + z), min(kind.max, kind.max + z)
    words = f"result is clamped to its type before the zero point {z} is added: all results are in {low}..{high}"
    yield Prediction(words, np.clip(s.sound, low, high).astype(s.sound.dtype))


def cut_short(s: Suspect) -> Iterator[Prediction]:
    """G = r up to an element; then a constant, or the same values in every sample: never written, or not again."""
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
        words = f"result stops at element {begin} of {flat.shape[1]}: all later elements are {last}"
        yield Prediction(words, like(made, s), bits=log2(flat.shape[1]) + CODE)
    elif len(g) > 1 and first > flat.shape[1] // _LEAST_PART and (g[:, first:] == g[:1, first:]).all():
        made[:, first:] = g[0, first:]
        words = f"result stops at element {first} of {flat.shape[1]}: later elements are equal in every sample"
        yield Prediction(words, like(made, s))


def parts(s: Suspect) -> Iterator[Prediction]:
    """Rows, columns, channels or a stretch of memory contain another sample or another tensor; the rest is r."""
    for name, region in _regions(s):
        for p in _of_region(s, name, region):
            yield p
            assert p.array is not None
            if not unequal(s.got[p.samples], p.array[p.samples]).any():
                return


def _of_region(s: Suspect, name: str, region: Mask) -> Iterator[Prediction]:
    for k in _SHIFTS[:4]:
        if abs(k) < len(s.own):
            side = "before" if k > 0 else "after"
            far = "" if abs(k) == 1 else f" {abs(k)} places"
            made = np.where(region, np.roll(s.own, k, 0), s.sound)
            kept = slice(k, None) if k > 0 else slice(None, k)
            yield Prediction(f"{name} are from the sample{far} {side}", made, kept)
    for t, array in s.others.items():
        if array.shape == s.got.shape and array.dtype == s.got.dtype:
            other = short(s.graph.tensors[t].name)
            yield Prediction(f"{name} are from '{other}'", np.where(region, array, s.sound))
    if s.got.ndim == 5:
        for axis, what in ((1, "row"), (2, "column")):
            for k in (1, -1):
                moved = np.where(region, np.roll(s.sound, k, axis + 1), s.sound)
                yield Prediction(f"{name} are off by one {what}", moved)


def _regions(s: Suspect) -> Iterator[tuple[str, Mask]]:
    """Yield the least rows, columns, channels and stretch that contain all differences, if smaller than the tensor."""
    wrong: Mask = s.wrong
    names = {wrong.ndim - 1: "channels", wrong.ndim - 2: "columns", wrong.ndim - 3: "rows"}
    for axis, name in sorted(names.items()):
        if axis < 1 or (axis < wrong.ndim - 1 and wrong.ndim < 4):
            continue
        hits = np.flatnonzero(hits_along(wrong, axis))
        low, high = int(hits[0]), int(hits[-1])
        if high - low + 1 < wrong.shape[axis]:
            region = np.zeros(wrong.shape[axis], bool)
            region[low : high + 1] = True
            shape = [1] * wrong.ndim
            shape[axis] = -1
            yield f"{name} {low}..{high}", np.broadcast_to(region.reshape(shape), wrong.shape)
    flat = np.asarray(wrong.reshape(len(wrong), -1).any(axis=0))
    hits = np.flatnonzero(flat)
    low, high = int(hits[0]), int(hits[-1])
    if high - low + 1 < len(flat):
        region = np.zeros(len(flat), bool)
        region[low : high + 1] = True
        yield f"elements {low}..{high}", np.broadcast_to(region.reshape(wrong.shape[1:]), wrong.shape)


def permuted(s: Suspect) -> Iterator[Prediction]:
    """g[..., c] = r[..., p(c)]: channels contain the values of other channels."""
    if s.got.ndim < 3 or not s.wrong_channels:
        return
    g, r = (np.ascontiguousarray(a.reshape(-1, a.shape[-1]).T) for a in (s.got, s.sound))
    known: dict[bytes, list[int]] = {}
    for c in range(len(r)):
        known.setdefault(r[c].tobytes(), []).append(c)
    source = {c: known.get(g[c].tobytes()) for c in s.wrong_channels}
    sources = {c: e[0] for c, e in source.items() if e is not None and len(np.unique(g[c])) > 1}
    if not sources:
        return
    made = s.sound.copy()
    for c, e in sources.items():
        made[..., c] = s.sound[..., e]
    pairs = ", ".join(f"{c} contains {e}" for c, e in list(sources.items())[:6])
    more = f" and {len(sources) - 6} more" if len(sources) > 6 else ""
    is_swap = len(sources) == 2 and all(sources.get(e) == c for c, e in sources.items())
    is_permutation = set(sources) == set(sources.values())
    if is_swap:
        words = f"channels {range_list(list(sources))} are exchanged"
    elif is_permutation:
        words = f"channels are permuted: {pairs}{more}"
    else:
        words = f"channels are copies of other channels: {pairs}{more}"
    yield Prediction(words, made, bits=2 * len(sources) * log2(s.got.shape[-1]))


def dead(s: Suspect) -> Iterator[Prediction]:
    """g[..., c] is constant: channels that are dead."""
    if not s.wrong_channels or len(s.got) * s.got[0].size // s.got.shape[-1] < 2:
        return
    g = s.got.reshape(-1, s.got.shape[-1])
    made, constants = s.sound.copy(), []
    for c in s.wrong_channels:
        if (g[:, c] == g[0, c]).all():
            constants.append(c)
            made[..., c] = g[0, c]
    if constants:
        values = sorted({g[0, c].item() for c in constants})
        value = f"constant {values[0]}" if len(values) == 1 else "constant, each with its own value"
        yield Prediction(
            f"{_are(constants)} {value}", made, bits=len(values) * CODE + log2_choose(s.got.shape[-1], len(constants))
        )


def offset(s: Suspect) -> Iterator[Prediction]:
    """g[..., c] = saturate(r[..., c] + d): channels are too high or too low by one number."""
    if s.got.dtype.kind not in "iu" or s.got.dtype.itemsize > 2 or not s.wrong_channels:
        return
    kind = np.iinfo(s.got.dtype.name)
    made, offsets = s.sound.astype(np.int64), {}
    difference = s.got.astype(np.int64) - made
    for c in s.wrong_channels:
        inner = difference[..., c][s.wrong[..., c]]
        d = int(inner[np.argmax(np.abs(inner))])
        offsets[c] = d
        made[..., c] = np.clip(s.sound[..., c].astype(np.int64) + d, kind.min, kind.max)
    amounts = sorted(set(offsets.values()))
    if len(amounts) == 1:
        side = "high" if amounts[0] > 0 else "low"
        where = "all channels are" if len(offsets) == s.got.shape[-1] else _are(list(offsets))
        bits = CODE + log2_choose(s.got.shape[-1], len(offsets))
        yield Prediction(f"{where} {abs(amounts[0])} too {side}", made.astype(s.got.dtype), bits=bits)


def _are(channels: list[int]) -> str:
    several = len(channels) > 1
    return f"channel{'s' * several} {range_list(channels)} {'are' if several else 'is'}"

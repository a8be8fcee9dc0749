"""Wrong inputs of the board: order of channels, layout, sign, scale, mean, another sample."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np

from tflq.arrays import Doubles
from tflq.diagnosis.compare.isolated import encode_reals
from tflq.diagnosis.hypotheses.arithmetic import fitted_zero_points
from tflq.diagnosis.hypotheses.evidence import NUMBER
from tflq.diagnosis.hypotheses.hypothesis import Prediction
from tflq.diagnosis.hypotheses.suspect import Suspect
from tflq.graph import Affine, Array, Tensor

_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""ImageNet's, of pixels / 255."""


def given(s: Suspect) -> Iterator[Prediction]:
    """G = the layer of another input; if the suspect is the input itself, g = that input."""
    t = s.outer_input if s.nodes else s.tensor
    if t is None or (s.nodes and t not in s.values):
        return
    x = s.values[t] if s.nodes else s.own
    for words, array in chain(variants(np.asarray(x), s.graph.tensors[t]), _offsets(s, t, np.asarray(x))):
        made = np.ascontiguousarray(array).reshape(x.shape)
        yield Prediction(f"input {words}", s.run({t: made}) if s.nodes else made)
    for f in _scale_factors(s, np.asarray(x)):
        for words, array in _multiplied(np.asarray(x), s.zero_point(t), f):
            yield Prediction(f"input {words}", s.run({t: array}) if s.nodes else array, bits=NUMBER)


def _scale_factors(s: Suspect, x: Array) -> tuple[float, ...]:
    """Return the factor of the input that fits most results, and its neighbors of two digits: slope of g over r."""
    if not s.nodes:
        got, sound = s.got.astype(np.float64) - s.zero_point(s.tensor), x.astype(np.float64) - s.zero_point(s.tensor)
    else:
        bare = (
            s.run({s.outer_input: np.full_like(x, s.zero_point(s.outer_input))}) if s.outer_input is not None else None
        )
        if bare is None:
            return ()
        zero = bare.astype(np.float64)
        got, sound = s.got.astype(np.float64) - zero, s.sound.astype(np.float64) - zero
    axes = tuple(range(got.ndim - 1))
    got, sound = got - got.mean(axis=axes), sound - sound.mean(axis=axes)
    inner = (s.got != s.got.max()) & (s.got != s.got.min()) & (s.sound != s.sound.max()) & (s.sound != s.sound.min())
    if not inner.any() or not np.square(sound[inner]).sum():
        return ()
    f = round(float((got[inner] * sound[inner]).sum() / np.square(sound[inner]).sum()), 2)
    return tuple(
        v
        for v in dict.fromkeys((round(f, 1), f, round(f + 0.01, 2), round(f - 0.01, 2)))
        if 0 < v < 16 and v not in (1, 2, 0.5)
    )


def _multiplied(x: Array, zero: int, f: float) -> Iterator[tuple[str, Array]]:
    """Yield the input multiplied by a factor: its codes, or the decoded values."""
    if x.dtype.kind == "f":
        yield f"is multiplied by {f:g}", (x * x.dtype.type(f)).astype(x.dtype)
        return
    if x.dtype.kind in "iu":
        yield f"has its codes multiplied by {f:g}", _rounded(x.astype(np.float64) * f, x)
        if zero:
            yield f"is multiplied by {f:g}", _rounded((x.astype(np.float64) - zero) * f + zero, x)


def _offsets(s: Suspect, t: int, x: Array) -> Iterator[tuple[str, Array]]:
    """Yield the input with one number added: the most common difference, or the offset that fits most results."""
    if x.dtype.kind not in "iu" or x.dtype.itemsize > 1:
        return
    wide, kind = x.astype(np.int64), np.iinfo(x.dtype.name)
    affine = s.encoding(t)
    if not s.nodes:
        numbers, counts = np.unique(s.got.astype(np.int64) - wide, return_counts=True)
        offsets: tuple[int, ...] = (int(numbers[np.argmax(counts)]),)
    elif s.linear is not None and affine is not None and not affine.is_per_axis:
        zero = int(affine.zero_point[0])
        offsets = tuple(zero - v for v in fitted_zero_points(s, s.linear, zero, s.linear.inside()))
    else:
        return
    for d in offsets:
        if d:
            side = "high" if d > 0 else "low"
            yield f"is {abs(d)} too {side}, saturated", np.clip(wide + d, kind.min, kind.max).astype(x.dtype)


def variants(x: Array, tensor: Tensor) -> Iterator[tuple[str, Array]]:
    """Yield other inputs that a board may have received, each with a description.

    Args:
        x: T[S, *shape], the right input.
        tensor: Encoding of the input.
    """
    yield from _orders(x)
    if len(x) > 1:
        yield "is the sample before", np.roll(x, 1, 0)
        yield "is the sample after", np.roll(x, -1, 0)
    if x.dtype.kind in "iu" and x.dtype.itemsize == 1:
        yield from _bytes(x)
    yield from _scales(x, tensor)


def _orders(x: Array) -> Iterator[tuple[str, Array]]:
    core = x.reshape(len(x), *x.shape[-3:]) if x.ndim >= 4 else x
    if core.shape[-1] > 1:
        words = "has its channels reversed (RGB as BGR)" if core.shape[-1] == 3 else "has its last axis reversed"
        yield words, core[..., ::-1]
    if core.ndim != 4:
        return
    height, width, channels = core.shape[1:]
    if channels > 1:
        yield "is given as planes (CHW), but read as HWC", core.transpose(0, 3, 1, 2)
        yield (
            "is given as HWC, but read as planes (CHW)",
            core.reshape(len(x), channels, height, width).transpose(0, 2, 3, 1),
        )
    yield "has rows and columns exchanged", core.transpose(0, 2, 1, 3)
    yield "is upside down", core[:, ::-1]
    yield "is mirrored", core[:, :, ::-1]
    yield "is turned by 180 degrees", core[:, ::-1, ::-1]
    for axis, forward, back in ((1, "down", "up"), (2, "to the right", "to the left")):
        name = "row" if axis == 1 else "column"
        for k in (1, -1, 2, -2):
            if abs(k) < core.shape[axis]:
                way = forward if k > 0 else back
                yield f"is moved by {abs(k)} {name}{'s' * (abs(k) > 1)} {way}", np.roll(core, k, axis)
    if min(height, width) > 1:
        coarse = core[:, ::2, ::2].repeat(2, 1).repeat(2, 2)[:, :height, :width]
        yield "has half the resolution, each pixel repeated", coarse


def _bytes(x: Array) -> Iterator[tuple[str, Array]]:
    kind = np.iinfo(x.dtype.name)
    wide = x.astype(np.int64)
    yield (
        "has the sign bit changed (uint8 given as int8, or the reverse)",
        (x.view(np.uint8) ^ np.uint8(128)).view(x.dtype),
    )
    for words, made in (
        ("is 128 too large, saturated", wide + 128),
        ("is 128 too small, saturated", wide - 128),
        ("is halved", wide >> 1),
        ("is halved, toward 0", np.trunc(wide / 2).astype(np.int64)),
        ("is doubled, saturated", wide * 2),
        ("is multiplied by 4, saturated", wide * 4),
        ("has its negative values lost", np.maximum(wide, 0)),
        ("is negated, saturated", -wide),
        ("is inverted (255 - x)", -1 - wide if kind.min < 0 else 255 - wide),
        *((f"has lost its lowest {k} bit{'s' * (k > 1)}", wide >> k << k) for k in (1, 2, 3, 4)),
    ):
        yield words, np.clip(made, kind.min, kind.max).astype(x.dtype)
    pixels = wide - kind.min
    yield "is x / 255 instead of x - 128", _rounded(pixels / 255 * 127, x)
    yield "has the values of x / 2", _rounded(np.floor(pixels / 2), x)
    yield "is inverted", np.clip(kind.max - pixels, kind.min, kind.max).astype(x.dtype)


def _scales(x: Array, tensor: Tensor) -> Iterator[tuple[str, Array]]:
    """Other numbers for the same pixels, brought to the input's encoding as TFLite's QUANTIZE does."""
    affine = tensor.quantization if tensor.dtype.is_integer else None
    if affine is not None and not isinstance(affine, Affine):
        return
    pixels = x.astype(np.float64)
    if x.dtype.kind == "i":
        pixels = pixels - np.iinfo(x.dtype.name).min
    made: list[tuple[str, Doubles]] = []
    for words, real in (
        ("is x (0..255)", pixels),
        ("is x / 255", pixels / 255),
        ("is x / 256", pixels / 256),
        ("is x / 127.5 - 1", pixels / 127.5 - 1),
        ("is x / 128 - 1", pixels / 128 - 1),
        ("is x - 128", pixels - 128),
        ("is x / 127.5", pixels / 127.5),
        ("is x / 128", pixels / 128),
    ):
        made.append((words, real))
    if x.shape[-1] == 3:
        made.append(("is (x / 255 - mean) / std of ImageNet", (pixels / 255 - _MEAN) / _STD))
        made.append(("is x / 255 - mean of ImageNet", pixels / 255 - _MEAN))
        made.append(("is x - mean of ImageNet", pixels - np.multiply(_MEAN, 255)))
    real = pixels if affine is None else (x.astype(np.float64) - affine.along(x.ndim)[1]) * affine.along(x.ndim)[0]
    mean, std = real.mean(), real.std()
    made += [
        ("lacks the division by its standard deviation, or has it twice", real * std if std else real),
        ("has its mean subtracted", real - mean),
        ("has its mean subtracted and is divided by its standard deviation", (real - mean) / std if std else real),
        ("is half as large", real / 2),
        ("is twice as large", real * 2),
        ("is a quarter as large", real / 4),
        ("is 4 times as large", real * 4),
        ("is 255 times as large", real * 255),
        ("is 255 times too small", real / 255),
        ("is 128 times too small", real / 128),
        ("is (x + 1) / 2", (real + 1) / 2),
        ("is 2 x - 1", real * 2 - 1),
        ("is negated", -real),
    ]
    for words, values in made:
        yield words, values.astype(x.dtype) if affine is None else encode_reals(values, tensor)


def _rounded(values: Doubles, x: Array) -> Array:
    kind = np.iinfo(x.dtype.name)
    return np.asarray(np.clip(np.rint(values), kind.min, kind.max).astype(x.dtype))

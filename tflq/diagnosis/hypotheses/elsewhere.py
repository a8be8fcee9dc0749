"""Constants from another place of the model: weights some bytes off, constants of another layer, shifted biases."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tflq.diagnosis.hypotheses.constants import channel_axis, with_data
from tflq.diagnosis.hypotheses.hypothesis import Prediction
from tflq.diagnosis.hypotheses.suspect import LINEAR, Suspect
from tflq.graph import ABSENT, Array
from tflq.units import short

_STEPS = (1, 2, 3, 4, 8, 12, 16, 32, 64, 128)
_SHIFTS = (2, 3, 4, 6, 8, 12, 16)


def weights_moved(s: Suspect) -> Iterator[Prediction]:
    """The weights are read at an offset of some elements, or are from another layer."""
    if s.weights is None:
        return
    tensor = s.graph.tensors[s.weights]
    w = np.ascontiguousarray(tensor.data)
    flat = w.reshape(-1)
    channel = flat.size // w.shape[channel_axis(s, w)]
    for k in dict.fromkeys((*_STEPS, *w.shape[1:], int(np.prod(w.shape[-2:])))):
        for sign in (1, -1):
            if 0 < k < flat.size and k != channel:
                side = "after" if sign < 0 else "before"
                words = f"weights are read {k} element{'s' * (k > 1)} {side} their place"
                yield Prediction(words, with_data(s, s.weights, tensor, np.roll(flat, sign * k).reshape(w.shape)))
    for name, other in _constants(s, w.ndim > 1):
        if other.dtype == w.dtype and other.size >= w.size:
            made = other.reshape(-1)[: w.size].reshape(w.shape)
            yield Prediction(f"weights are from '{name}'", with_data(s, s.weights, tensor, made))


def bias_moved(s: Suspect) -> Iterator[Prediction]:
    """The bias is that of another layer, is read some elements off, or lacks its shift."""
    if s.bias is None:
        return
    tensor = s.graph.tensors[s.bias]
    b = np.ascontiguousarray(tensor.data).reshape(-1)
    shape = np.asarray(tensor.data).shape
    for name, other in _constants(s, False):
        if other.dtype == b.dtype and other.size != 1:
            made = np.resize(other.reshape(-1), b.size).reshape(shape)
            yield Prediction(f"bias is that of '{name}'", with_data(s, s.bias, tensor, made))
    for k in (2, 3, 4, 8):
        for sign in (1, -1):
            if k < b.size:
                side = "before" if sign > 0 else "after"
                moved = np.roll(b, sign * k).reshape(shape)
                yield Prediction(f"bias is read {k} elements {side} its place", with_data(s, s.bias, tensor, moved))
    if b.dtype.kind == "i":
        for k in _SHIFTS:
            for words, made in ((f"right by {k}", b >> k), (f"left by {k}", (b.astype(np.int64) << k).astype(b.dtype))):
                yield Prediction(f"bias is shifted to the {words}", with_data(s, s.bias, tensor, made.reshape(shape)))


def _constants(s: Suspect, is_wide: bool) -> Iterator[tuple[str, Array]]:
    """Yield node name and constant of the other linear layers: weights if wide, else biases; skip all-zero ones."""
    for i, node in enumerate(s.graph.nodes):
        if i in s.nodes or node.operator not in LINEAR:
            continue
        for t in node.inputs:
            tensor = None if t == ABSENT else s.graph.tensors[t]
            if (
                tensor is not None
                and tensor.data is not None
                and (len(tensor.shape) > 1) == is_wide
                and np.any(tensor.data)
            ):
                yield short(node.name), np.ascontiguousarray(tensor.data)

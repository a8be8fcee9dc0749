"""Numbers that are fitted to the dump: a bias, a factor or a weight of a channel; each is computed and counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tflq.arrays import Doubles, Integers
from tflq.diagnosis.hypotheses.arithmetic import standard
from tflq.diagnosis.hypotheses.hypothesis import Prediction
from tflq.diagnosis.hypotheses.linear import Linear
from tflq.diagnosis.hypotheses.suspect import Suspect
from tflq.graph import Array
from tflq.interpreter.accumulate.patches import padded, patches
from tflq.units import range_list

_REACH = 1 << 30
"""Biases that are looked for."""
_MOST_POSITIONS, _MOST_TAPS, _MOST_CHANNELS = 20000, 5000, 4
_LIKELY = 12
"""Taps for which the weight is tried exactly."""


@dataclass(frozen=True, eq=False)
class _Flat:
    """Totals and results of a layer as [positions, O]."""

    linear: Linear
    totals: Integers
    got: Integers
    channels: list[int]


def bias_off(s: Suspect) -> Iterator[Prediction]:
    """Total + d: the bias of some channels is off; by bisection, as the epilogue does not decrease."""
    flat = _flat(s)
    if flat is None:
        return
    columns = np.array(flat.channels)
    low, high = (np.full(flat.totals.shape[1], sign * _REACH, np.int64) for sign in (-1, 1))
    wanted = flat.got.sum(axis=0)
    for _ in range(32):
        middle = (low + high) >> 1
        sums = flat.linear.result(flat.totals + middle).sum(axis=0)
        below = sums < wanted
        low, high = np.where(below, middle + 1, low), np.where(below, high, middle)
    results = flat.linear.result(flat.totals + low)
    fits = [int(c) for c in columns if (results[:, c] == flat.got[:, c]).all()]
    if not fits:
        return
    d = np.zeros_like(low)
    d[fits] = low[fits]
    amounts = sorted({int(v) for v in d[fits]})
    amount = f"{amounts[0]:+d}" if len(amounts) == 1 else f"{amounts[0]:+d} to {amounts[-1]:+d}"
    words = f"bias of {_channels(fits, s)} is off by {amount}"
    if len(fits) == 1 and s.bias is not None:
        data = np.asarray(s.graph.tensors[s.bias].data).reshape(-1)
        if data.dtype.kind in "iu" and fits[0] < data.size:
            right = int(data[fits[0]])
            wrong = right + int(d[fits[0]])
            flipped = (wrong ^ right) & 0xFFFFFFFF
            bit = f": bit {flipped.bit_length() - 1} is flipped" if flipped and flipped & (flipped - 1) == 0 else ""
            words = f"bias of channel {fits[0]} is about {wrong}, not {right}{bit}"
    yield Prediction(words, s.after_main(flat.linear.result(flat.linear.totals + d)), fitted=len(fits))


def factor(s: Suspect) -> Iterator[Prediction]:
    """round(total * M / 2^N * f) + zero_point: channels have separate factors f (scales, batch normalization)."""
    flat = _flat(s)
    if flat is None or flat.linear.steps is None or standard(flat.linear) is None:
        return
    steps = flat.linear.steps
    slope: Doubles = np.broadcast_to(steps.multiplier * np.exp2(-steps.shift.astype(np.float64)), flat.totals.shape[1:])
    bias = None if s.bias is None else np.asarray(s.graph.tensors[s.bias].data).reshape(-1)
    kept = [("", np.zeros(flat.totals.shape[1], np.int64))]
    if bias is not None and bias.size == flat.totals.shape[1] and bias.dtype.kind in "iu":
        kept.append((" (without its bias)", bias.astype(np.int64)))
    for words, apart in kept:
        f = _factors(flat, apart, slope)
        good = [c for c in flat.channels if np.isfinite(f[c]) and abs(f[c] - 1) > 1e-4]
        if not good:
            continue
        own = np.where(np.isin(np.arange(len(f)), good), f, 1.0)
        real = (flat.linear.totals - apart) * (slope * own) + apart * slope
        y = np.clip(np.rint(real) + steps.zero_point, steps.low, steps.high).astype(np.int64)
        least, most = float(own[good].min()), float(own[good].max())
        fitted = len(good)
        if most - least < 1e-3 * abs(most):
            fitted = 1
            text = f"{_channels(good, s)} {'are' if len(good) > 1 else 'is'} multiplied by {most:.4g}"
        else:
            range_words = f"{least:.3g} to {most:.3g}: scales or batch normalization"
            text = f"{_channels(good, s)} have separate factors, {range_words}"
        yield Prediction(f"{text}{words}", s.after_main(y), fitted=fitted)


def one_weight(s: Suspect) -> Iterator[Prediction]:
    """Total + d * (x_t - zero_point): one weight of a channel is another number."""
    flat = _flat(s, _MOST_POSITIONS)
    node = s.graph.nodes[s.main]
    if flat is None or flat.linear.steps is None or len(flat.channels) > _MOST_CHANNELS or s.weights is None:
        return
    zero = s.zero_point(node.inputs[0])
    taps = taps_of(s, flat.linear)
    if taps is None:
        return
    slope = np.broadcast_to(
        flat.linear.steps.multiplier * np.exp2(-flat.linear.steps.shift.astype(np.float64)), flat.totals.shape[1:]
    )
    totals = flat.linear.totals.reshape(-1, flat.totals.shape[1])
    got = s.got.reshape(-1, flat.totals.shape[1]).astype(np.int64)
    sound = s.sound.reshape(got.shape).astype(np.int64)
    for c in flat.channels:
        x = taps(c)
        if x is None or x.shape[1] > _MOST_TAPS:
            continue
        for taken, held in ((zero, ""), (0, ", with unchanged folded zero points")):
            q = x.astype(np.int64) - taken
            changes = _weight_of(flat.linear, q, totals, got, sound, c, slope[c])
            for t, d in changes[:_MOST_CHANNELS]:
                made = totals.copy()
                made[:, c] += d * q[:, t]
                y = flat.linear.result(made.reshape(flat.linear.totals.shape))
                yield Prediction(f"{_weight_words(flat.linear, c, t, d)}{held}", s.after_main(y))
            if changes:
                break


def _weight_of(
    linear: Linear, q: Integers, totals: Integers, got: Integers, sound: Integers, c: int, slope: float
) -> list[tuple[int, int]]:
    """Return taps and weight changes that reproduce the whole channel, the likeliest first."""
    steps = linear.steps
    assert steps is not None
    inner = (got[:, c] > steps.low) & (got[:, c] < steps.high) & (sound[:, c] > steps.low) & (sound[:, c] < steps.high)
    inner = inner if np.any((got != sound)[inner, c]) else np.ones(len(got), bool)
    rows = np.flatnonzero(inner)[:_MOST_POSITIONS]
    difference = (got[rows, c] - sound[rows, c]) / slope
    taken = q[rows].astype(np.float64)
    norms = np.maximum(np.square(taken).sum(axis=0), 1e-9)
    along = taken.T @ difference
    amounts = along / norms
    likely = np.argsort(-np.square(along) / norms)[:_LIKELY]
    weights = linear.weights[c].reshape(-1)
    changes = []
    for t in likely.tolist():
        w = int(weights[t])
        bits = [int(np.array((w & 0xFF) ^ (1 << b), np.uint8).view(np.int8)) - w for b in range(8)]
        near = [round(amounts[t]) + k for k in (0, 1, -1, 2, -2)]
        for d in dict.fromkeys((*near, *sorted(bits, key=lambda d: abs(d - amounts[t])))):
            if d == 0 or not -255 <= d <= 255:
                continue
            column = totals.copy() if len(totals) < 4096 else totals[rows].copy()
            kept = slice(None) if len(totals) < 4096 else rows
            column[:, c] += d * q[kept, t]
            if (linear.result(column)[:, c] == got[kept, c]).all():
                changes.append((t, d))
    return changes


def _weight_words(linear: Linear, c: int, t: int, d: int) -> str:
    right = int(linear.weights[c].reshape(-1)[t])
    place = tuple(int(i) for i in np.unravel_index(t, linear.weights.shape[1:]))
    flipped = (right ^ (right + d)) & 0xFF
    bit = f": bit {flipped.bit_length() - 1} is flipped" if flipped & (flipped - 1) == 0 else ""
    return f"weight {list(place)} of channel {c} is {right + d}, not {right}{bit}"


def taps_of(s: Suspect, linear: Linear) -> Callable[[int], Array] | None:
    """Return a function channel -> stored inputs of each tap, [positions, taps]; None if not available."""
    params: Any = s.graph.nodes[s.main].params
    x = linear.x
    window = getattr(params, "window", None) or getattr(getattr(params, "prepared", None), "window", None)
    if window is None:
        rows = x.reshape(-1, linear.weights.shape[1])
        return lambda _channel: rows
    image = padded(x.reshape(-1, *x.shape[-3:]), window, linear.pad_value or 0, np.dtype(np.int16))
    out = linear.totals.shape[-3:-1]
    windows = patches(image, window, out)
    depth = linear.weights[0].size // (window.kernel[0] * window.kernel[1])
    outputs, channels = linear.weights.shape[0], x.shape[-1]
    groups = channels // depth
    shaped = np.asarray(windows).reshape(-1, window.kernel[0], window.kernel[1], channels)
    if shaped.size > 1 << 27:
        return None

    def of_channel(c: int) -> Array:
        first = c // (outputs // groups) * depth
        return shaped[..., first : first + depth].reshape(len(shaped), -1)

    return of_channel


def _factors(flat: _Flat, apart: Integers, slope: Doubles) -> Doubles:
    """Return the middle of the factors that all elements inside the limits allow; NaN if there is none."""
    steps = flat.linear.steps
    assert steps is not None
    base = (flat.totals - apart) * slope
    y = flat.got - steps.zero_point - apart * slope
    inner = (flat.got > steps.low) & (flat.got < steps.high) & (np.abs(base) > 0.5)
    with np.errstate(divide="ignore", invalid="ignore"):
        a, b = (y - 0.5) / base, (y + 0.5) / base
    low = np.where(inner, np.minimum(a, b), -np.inf).max(axis=0, initial=-np.inf)
    high = np.where(inner, np.maximum(a, b), np.inf).min(axis=0, initial=np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        least_squares = np.where(inner, y * base, 0).sum(axis=0) / np.where(inner, base * base, 0).sum(axis=0)
        middle = (low + high) / 2
    return np.asarray(np.where((low <= high) & np.isfinite(middle), middle, least_squares), np.float64)


def _flat(s: Suspect, most: int = 1 << 21) -> _Flat | None:
    """Return the layer as rows of channels, at most some positions; None if its result is not the tensor."""
    linear = s.linear
    if linear is None or s.nodes[-1] != s.main or not s.wrong_channels:
        return None
    outputs = linear.totals.shape[-1]
    totals, got = linear.totals.reshape(-1, outputs), s.got.reshape(-1, outputs).astype(np.int64)
    step = max(1, totals.size // most)
    differing = np.flatnonzero(s.wrong.reshape(got.shape).any(axis=1))[: most // outputs + 1]
    rows = np.unique(np.concatenate([np.arange(0, len(totals), step), differing]))
    return _Flat(linear, totals[rows], got[rows], s.wrong_channels)


def _channels(found: list[int], s: Suspect) -> str:
    if len(found) == s.got.shape[-1]:
        return "all channels"
    return f"channel{'s' * (len(found) > 1)} {range_list(found)}"

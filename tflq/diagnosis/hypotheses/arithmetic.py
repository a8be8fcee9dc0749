"""One change in the arithmetic of a linear layer: rounding, shift, multiplier, accumulator, saturation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tflq.arrays import Integers
from tflq.diagnosis.hypotheses.hypothesis import Prediction
from tflq.diagnosis.hypotheses.linear import ROUNDINGS, Linear, Round, Steps
from tflq.diagnosis.hypotheses.suspect import Suspect
from tflq.graph import Array


def standard(linear: Linear) -> Round | None:
    """Return the rounding that reproduces the layer's own results; None if the rule is not one multiplication."""
    if linear.steps is None:
        return None
    own = linear.result(linear.totals)
    return next((how for how in ROUNDINGS.values() if np.array_equal(linear.rounded(linear.totals, how), own)), None)


def rounding(s: Suspect) -> Iterator[Prediction]:
    """The multiplication rounds otherwise."""
    linear = s.linear
    if linear is None or linear.steps is None:
        return
    for words, how in ROUNDINGS.items():
        yield Prediction(f"rounding is another one: {words}", s.after_main(linear.rounded(linear.totals, how)))


def shift(s: Suspect) -> Iterator[Prediction]:
    """The results are multiplied by a power of two: a shift is off."""
    for k in (-1, 1, -2, 2, -3, 3, -4, 4):
        times = f"results are multiplied by 2^{k}: the shift is off by {abs(k)}"
        made = _with_steps(s, lambda steps, k=k: replace(steps, shift=steps.shift - k))
        yield Prediction(times, made)


def multiplier(s: Suspect) -> Iterator[Prediction]:
    """The multiplier has fewer bits than it should, or is that of another channel."""
    linear = s.linear
    if linear is None or linear.steps is None:
        return
    m = linear.steps.multiplier
    for k in (1, -1):
        if m.size > 1:
            side = "before" if k > 0 else "after"
            made = _with_steps(
                s, lambda steps, k=k: replace(steps, multiplier=np.roll(m, k), shift=np.roll(steps.shift, k))
            )
            yield Prediction(f"multiplier and shift belong to the channel {side}", made)
    width = int(m.max()).bit_length()
    for bits in (24, 16, 15, 12, 8, 7):
        if bits < width:
            unit = np.int64(1) << (width - bits)
            for words, cut in (("rounded", (m + unit // 2) // unit * unit), ("cut", m // unit * unit)):
                made = _with_steps(s, lambda steps, cut=cut: replace(steps, multiplier=cut))
                yield Prediction(f"multiplier has {bits} bits, {words}", made)


def accumulator(s: Suspect) -> Iterator[Prediction]:
    """Sums have n bits: they wrap, or saturate."""
    linear = s.linear
    if linear is None:
        return
    largest = int(np.abs(linear.totals).max(initial=0))
    for bits in range(min(31, largest.bit_length()), 7, -1):
        half = np.int64(1) << (bits - 1)
        wrapped = ((linear.totals + half) & (2 * half - 1)) - half
        saturated = np.clip(linear.totals, -half, half - 1)
        share = np.mean(wrapped != linear.totals)
        words = f"accumulator has {bits} bits ({share:.2%} of the sums do not fit)"
        yield Prediction(f"{words} and wraps", s.after_main(linear.result(wrapped)))
        yield Prediction(f"{words} and saturates", s.after_main(linear.result(saturated)))


def wraps(s: Suspect) -> Iterator[Prediction]:
    """The result keeps its low bits instead of saturating."""
    linear = s.linear
    if linear is None or linear.steps is None:
        return
    how = standard(linear)
    if how is None:
        return
    steps = linear.steps
    wide = replace(steps, low=-(1 << 40), high=1 << 40)
    y = linear.rounded(linear.totals, how, wide)
    bits = 8 * s.got.dtype.itemsize
    low = -(1 << (bits - 1)) if s.got.dtype.kind == "i" else 0
    wrapped = ((y - low) & ((1 << bits) - 1)) + low
    yield Prediction("result wraps instead of saturating", s.after_main(np.clip(wrapped, steps.low, steps.high)))
    yield Prediction("result wraps instead of saturating, without its clamp", s.after_main(wrapped))
    clamped = np.maximum(y, steps.low)
    wrapped = ((clamped - low) & ((1 << bits) - 1)) + low
    yield Prediction("result wraps above, and is clamped below", s.after_main(wrapped))


def clamp(s: Suspect) -> Iterator[Prediction]:
    """The clamp of the fused activation is missing, or that of another one."""
    linear = s.linear
    if linear is None or linear.steps is None:
        return
    how, t = standard(linear), s.graph.nodes[s.main].outputs[0]
    encoding, dtype = s.encoding(t), s.graph.tensors[t].dtype
    if how is None or encoding is None:
        return
    zero, scale = int(encoding.zero_point[0]), float(encoding.scale[0])
    six, one = zero + round(6 / scale), round(1 / scale)
    for words, low, high in (
        ("activation is omitted: no value is clamped", dtype.minimum, dtype.maximum),
        ("ReLU is applied instead of the model's clamp", zero, dtype.maximum),
        ("ReLU6 is applied instead of the model's clamp", zero, min(six, dtype.maximum)),
        ("ReLU of -1..1 is applied instead of the model's clamp", zero - one, zero + one),
        ("negative half of the type is lost: clamped at 0", max(0, dtype.minimum), dtype.maximum),
        ("type is narrowed to -127..127", max(-127, dtype.minimum), min(127, dtype.maximum)),
    ):
        made = _with_steps(
            s, lambda steps, a=low, b=high: replace(steps, low=max(a, dtype.minimum), high=min(b, dtype.maximum))
        )
        yield Prediction(words, made)


def output_zero_point(s: Suspect) -> Iterator[Prediction]:
    """The output's zero point is left out, has the wrong sign, or another value."""
    t = s.graph.nodes[s.main].outputs[0]
    encoding, linear = s.encoding(t), s.linear
    if encoding is None or linear is None or linear.steps is None or standard(linear) is None:
        return
    z = int(encoding.zero_point[0])
    dtype = s.graph.tensors[t].dtype
    others = [("is left out", -z), ("has the wrong sign", -2 * z)]
    inner = s.got.astype(np.int64) - s.sound.astype(np.int64)
    values, counts = np.unique(inner[inner != 0], return_counts=True)
    if len(values):
        d = int(values[np.argmax(counts)])
        others.append((f"is {z + d}, not {z}", d))
    for words, d in others:
        if d == 0:
            continue
        moved = _with_steps(s, lambda p, d=d: replace(p, zero_point=p.zero_point + d))
        yield Prediction(f"output's zero point {words}", moved)
        low = max(dtype.minimum, linear.steps.low + d * (linear.steps.low != dtype.minimum))
        moved = _with_steps(s, lambda p, d=d, low=low: replace(p, zero_point=p.zero_point + d, low=low))
        yield Prediction(f"output's zero point {words}, its clamp with it", moved)


def padding(s: Suspect) -> Iterator[Prediction]:
    """Taps outside the image have another value than the zero point."""
    linear = s.linear
    if linear is None or linear.pad_value is None:
        return
    outside = linear.weights.reshape(len(linear.weights), -1).sum(axis=1) - linear.inside()
    if not outside.any():
        return
    z = linear.pad_value
    dtype = s.graph.tensors[s.graph.nodes[s.main].inputs[0]].dtype
    for v in dict.fromkeys((0, dtype.minimum, dtype.maximum, -z, 128, 1, -1)):
        if v != z:
            totals: Integers = linear.totals + (v - z) * outside
            yield Prediction(
                f"image is padded with {v} instead of the zero point {z}", s.after_main(linear.result(totals))
            )


def input_zero_point(s: Suspect) -> Iterator[Prediction]:
    """The input's zero point is left out, has the wrong sign or another value, in the sums and in the padding."""
    linear = s.linear
    if linear is None:
        return
    encoding = s.encoding(s.graph.nodes[s.main].inputs[0])
    if encoding is None or encoding.is_per_axis:
        return
    z = int(encoding.zero_point[0])
    inside = linear.inside()
    everywhere = np.broadcast_to(linear.weights.reshape(len(linear.weights), -1).sum(axis=1), inside.shape)
    for v in dict.fromkeys((0, -z, 128, -128, 1, -1, z + 1, z - 1, 127, *fitted_zero_points(s, linear, z, inside))):
        if v != z:
            words = "is left out" if v == 0 else "has the wrong sign" if v == -z else f"is {v}, not {z}"
            yield Prediction(
                f"input's zero point {words}", s.after_main(linear.result(linear.totals + (z - v) * inside))
            )
            if linear.pad_value is not None:
                made = linear.result(linear.totals + (z - v) * everywhere)
                yield Prediction(f"input's zero point {words}, but in the padding", s.after_main(made))


def fitted_zero_points(s: Suspect, linear: Linear, z: int, inside: Integers) -> tuple[int, ...]:
    """Return the zero point that fits most elements, g - r = (z - v) * inside * M / 2^N, and its neighbors.

    Example: z = -128, inside = 100, M / 2^N = 0.004: each step of v changes the result by 0.4. If most elements are 4
    too low, then z - v = -10, so v = -118.
    """
    steps = linear.steps
    if steps is None or s.got.size != linear.totals.size:
        return ()
    step = np.broadcast_to(inside * (steps.multiplier * np.exp2(-steps.shift.astype(np.float64))), linear.totals.shape)
    apart = (s.got.astype(np.int64) - s.sound.astype(np.int64)).reshape(step.shape)
    y = linear.result(linear.totals)
    is_inner = (y > steps.low) & (y < steps.high)
    taken = is_inner & (np.abs(step) > np.abs(step).max(initial=0) / 2)
    if not taken.any():
        return ()
    v = z - round(float(np.median(apart[taken] / step[taken])))
    return v, v + 1, v - 1


def _with_steps(s: Suspect, change: object) -> Array | None:
    linear = s.linear
    assert callable(change)
    how = None if linear is None else standard(linear)
    if linear is None or linear.steps is None or how is None:
        return None
    steps: Steps = change(linear.steps)
    return s.after_main(linear.rounded(linear.totals, how, steps))

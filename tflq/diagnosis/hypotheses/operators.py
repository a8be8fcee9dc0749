"""One change in an operator without weights: activation, inputs, encodings, positions read, rounding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from itertools import permutations

import numpy as np

from tflq.diagnosis.compare.isolated import run_node
from tflq.diagnosis.hypotheses.hypothesis import Prediction
from tflq.diagnosis.hypotheses.suspect import LINEAR, NOT_COMPUTED, Suspect
from tflq.graph import Affine, Array, Tensor
from tflq.interpreter.accumulate import window_sums
from tflq.interpreter.layers.pooling import AveragePool
from tflq.units import short

_ACTIVATIONS = {
    "none": "activation is omitted: no value is clamped",
    "relu": "ReLU is applied instead of the model's clamp",
    "relu6": "ReLU6 is applied instead of the model's clamp",
    "relu_n1_to_1": "ReLU of -1..1 is applied instead of the model's clamp",
}
_BETA = (-2, -1, 1, 2, 3, -3)
_MOST_ORDERS = 24
_WIDE = 1 << 40
_DERIVED = ("pairs", "first", "second", "table", "step_map")
"""Fields of params that other fields determine; kernels run their rule if they are None."""


def activation(s: Suspect) -> Iterator[Prediction]:
    """The fused activation is another one, or the node of an activation has no effect."""
    key = "fused_activation_function"
    if s.graph.nodes[s.main].attributes.get(key) is not None:
        for kind, words in _ACTIVATIONS.items():
            yield Prediction(words, s.rerun(attributes={key: kind}))
    node = s.graph.nodes[s.nodes[-1]]
    is_linear = s.nodes[-1] == s.main and node.operator in LINEAR
    if node.inputs and node.inputs[0] in s.values and not is_linear:
        x = s.values[node.inputs[0]]
        if x.shape[1:] == s.got.shape[1:] and x.dtype == s.got.dtype:
            yield Prediction(f"{node.operator} does nothing: its input is stored", np.broadcast_to(x, s.got.shape))


def encodings(s: Suspect) -> Iterator[Prediction]:
    """An input's or the output's zero point or scale is wrong, of an operator that is no linear layer."""
    if s.operator in LINEAR:
        return
    node = s.graph.nodes[s.main]
    places = [(t, f"input {i + 1}" if len(s.inputs) > 1 else "input") for i, t in enumerate(s.inputs)]
    for t, name in (*places, (node.outputs[0], "output")):
        tensor, affine = s.graph.tensors[t], s.encoding(t)
        if affine is None or affine.is_per_axis:
            continue
        z = affine.zero_point
        for words, changed in (
            ("zero point is left out", replace(affine, zero_point=z * 0)),
            ("zero point has the wrong sign", replace(affine, zero_point=-z)),
            ("zero point is 128 off", replace(affine, zero_point=z + (128 if z[0] <= 0 else -128))),
            *((f"scale is off by 2^{k}", _times(affine, 2.0**k)) for k in _BETA),
        ):
            yield Prediction(f"{name}'s {words}", s.rerun({t: replace(tensor, quantization=changed)}))
    out = s.encoding(node.outputs[0])
    if len(places) > 1 and out is not None:
        for t, name in places:
            if s.encoding(t) is not None:
                read = _encoded_as(s.graph.tensors[t], out)
                yield Prediction(f"{name} is not rescaled: it is read as the output's", s.rerun({t: read}))
        every = {t: _encoded_as(s.graph.tensors[t], out) for t, _ in places if s.encoding(t) is not None}
        yield Prediction("inputs are not rescaled: all are read as the output's", s.rerun(every))
    yield from _pairs(s)


def _pairs(s: Suspect) -> Iterator[Prediction]:
    """Two inputs with scales, or whole encodings, that are exchanged or taken from another tensor."""
    out = s.graph.nodes[s.main].outputs[0]
    if len(s.inputs) != 2 or any(s.encoding(t) is None for t in (*s.inputs, out)):
        return
    first, second = s.inputs
    three = {t: s.graph.tensors[t] for t in (first, second, out)}
    for what, like in (("encoding", _encoded_as), ("scale", _scaled_as)):
        for words, changes in (
            (f"{what}s of the inputs are exchanged", {first: second, second: first}),
            (f"input 2 has the {what} of input 1", {second: first}),
            (f"input 1 has the {what} of input 2", {first: second}),
            (f"inputs are not rescaled: they have the {what} of the output", {first: out, second: out}),
            (f"no tensor is rescaled: all have the {what} of input 1", {second: first, out: first}),
            (f"no tensor is rescaled: all have the {what} of input 2", {first: second, out: second}),
        ):
            yield Prediction(words, s.rerun({t: like(three[t], three[o].affine) for t, o in changes.items()}))


def _times(affine: Affine, factor: float) -> Affine:
    return replace(affine, scale=(affine.scale * factor).astype(affine.scale.dtype))


def _scaled_as(tensor: Tensor, affine: Affine) -> Tensor:
    return replace(tensor, quantization=replace(tensor.affine, scale=affine.scale))


def _encoded_as(tensor: Tensor, affine: Affine) -> Tensor:
    return replace(tensor, quantization=affine)


def softmax(s: Suspect) -> Iterator[Prediction]:
    """The softmax has another beta: its input's scale is off."""
    if "softmax" not in s.operator:
        return
    beta = s.graph.nodes[s.main].attributes.get("beta")
    for k in _BETA:
        if isinstance(beta, (int, float)):
            yield Prediction(f"softmax' scale is off by 2^{k}", s.rerun(attributes={"beta": float(beta) * 2.0**k}))
    x = s.values.get(s.inputs[0]) if s.inputs else None
    if x is not None:
        yield Prediction("softmax gets its values in reverse order", s.run({s.inputs[0]: np.flip(x, -1)}))
        if x.shape[1:] == s.got.shape[1:] and x.dtype == s.got.dtype:
            yield Prediction("softmax is omitted: its input is stored", np.broadcast_to(x, s.got.shape))


def joined(s: Suspect) -> Iterator[Prediction]:
    """A concatenation copies its operands one after another in memory, or takes them in another order."""
    if s.operator not in ("concatenation", "concat") or len(s.nodes) != 1 or len(s.inputs) < 2:
        return
    parts = [s.sound.take(range(low, high), _joined_axis(s)) for low, high in _joined_ranges(s)]
    if parts and sum(a[0].size for a in parts) == s.got[0].size:
        flat = np.concatenate([a.reshape(len(s.got), -1) for a in parts], axis=1)
        words = "operands are copied one after another in memory, not interleaved"
        yield Prediction(words, flat.reshape(s.got.shape))


def _joined_axis(s: Suspect) -> int:
    shapes = [s.graph.tensors[t].shape for t in s.inputs]
    differing = [i for i in range(len(shapes[0])) if s.graph.tensors[s.tensor].shape[i] != shapes[0][i]]
    return (differing[0] if differing else len(shapes[0]) - 1) + 1


def _joined_ranges(s: Suspect) -> list[tuple[int, int]]:
    axis, ranges, low = _joined_axis(s) - 1, [], 0
    for t in s.graph.nodes[s.main].inputs:
        if t in s.inputs and len(s.graph.tensors[t].shape) > axis:
            ranges.append((low, low := low + s.graph.tensors[t].shape[axis]))
    return ranges


def operands(s: Suspect) -> Iterator[Prediction]:
    """The operator reads another tensor, another sample, its inputs in another order, or only one of them."""
    node = s.graph.nodes[s.main]
    if 2 <= len(s.inputs) <= 4:
        computed = [t for t in node.inputs if t in s.inputs]
        rest = [t for t in node.inputs if t not in s.inputs]
        for order in list(permutations(range(len(computed))))[1:_MOST_ORDERS]:
            shapes = [s.graph.tensors[computed[i]].shape for i in order]
            words = f"inputs are in the order {', '.join(str(i + 1) for i in order)}"
            if len({len(x) for x in shapes}) == 1 and not rest:
                yield Prediction(words, s.rerun(inputs=[computed[i] for i in order]))
    for i, t in enumerate(s.inputs):
        name = f"input {i + 1}" if len(s.inputs) > 1 else "input"
        x = s.values[t]
        if len(s.inputs) > 1:
            nothing = np.full_like(x, s.zero_point(t))
            yield Prediction(f"{name} does not arrive: it counts as 0", s.run({t: nothing}))
            yield Prediction(f"{name} contains stored zeros", s.run({t: np.zeros_like(x)}))
        if len(x) > 1:
            for k, side in ((1, "before"), (-1, "after")):
                kept = slice(1, None) if k > 0 else slice(None, -1)
                yield Prediction(f"{name} is that of the sample {side}", s.run({t: np.roll(x, k, 0)}), kept)
        buffers = {k: a for k, a in {**s.others, **s.values}.items() if not s.graph.tensors[k].is_constant}
        for other, array in buffers.items():
            if other != t and array.shape == x.shape and array.dtype == x.dtype:
                words = f"{name} is '{short(s.graph.tensors[other].name)}': a wrong buffer"
                yield Prediction(words, s.run({t: array}))


def pools(s: Suspect) -> Iterator[Prediction]:
    """A pool divides by another count, rounds otherwise, or is of the other kind."""
    node = s.graph.nodes[s.main]
    params = node.params
    if "pool" in s.operator and not isinstance(params, AveragePool):
        yield Prediction("pool takes the average instead of the maximum", s.rerun(operator="average_pool_2d"))
    if not isinstance(params, AveragePool) or node.inputs[0] not in s.values:
        return
    yield Prediction("pool takes the maximum instead of the average", s.rerun(operator="max_pool_2d"))
    x = s.values[node.inputs[0]]
    taps = int(params.window.taps)
    sums = window_sums(params.window, x, params.magnitude)
    zero = s.zero_point(node.inputs[0])
    full = np.full_like(params.counts, taps)
    with_zero = sums + (zero * (taps - params.counts)).astype(sums.dtype)
    average = params.average.apply
    words = "pool divides by the whole window at the border, padded with"
    yield Prediction(f"{words} 0", s.after_main(average(sums.copy(), full)))
    yield Prediction(f"{words} the zero point", s.after_main(average(with_zero.copy(), full)))
    whole = sums.astype(np.int64)
    dtype = s.graph.tensors[node.outputs[0]].dtype
    if dtype.is_integer:
        for words, y in (
            ("rounds down", np.floor_divide(whole, params.counts)),
            ("cuts toward 0", np.sign(whole) * (np.abs(whole) // params.counts)),
            ("rounds half up", np.floor_divide(2 * whole + params.counts, 2 * params.counts)),
            ("rounds half to even", np.rint(whole / params.counts).astype(np.int64)),
        ):
            yield Prediction(f"pool {words}", s.after_main(np.clip(y, dtype.minimum, dtype.maximum)))
    power = 1 << (max(taps - 1, 1)).bit_length()
    if power != taps:
        made = s.after_main(average(sums.copy(), full * power // taps))
        yield Prediction(f"pool divides by {power}, the next power of two", made)


def saturation(s: Suspect) -> Iterator[Prediction]:
    """An operator without weights wraps instead of saturating: its own rule with wider limits, cut to the type."""
    node = s.graph.nodes[s.main]
    tensor = s.graph.tensors[node.outputs[0]]
    if s.operator in LINEAR or not tensor.dtype.is_integer or not _has_limits(node.params):
        return
    for words, kept in (("", ()), (" above", ("minimum",))):
        params = _widened(node.params, kept)
        try:
            made = run_node(replace(node, params=params), s.values)[node.outputs[0]]
        except NOT_COMPUTED:
            return
        yield Prediction(f"result wraps{words} instead of saturating", s.after_main(made))


def _has_limits(params: object) -> bool:
    """Whether params or a part of them contain limits of the result; params of a table contain none."""
    values = {f.name: getattr(params, f.name) for f in fields(params)} if is_dataclass(params) else {}
    return any(isinstance(values.get(k), int) for k in ("minimum", "maximum")) or any(map(_has_limits, values.values()))


def _widened(params: object, kept: tuple[str, ...]) -> object:
    """Return params with limits wider than any result; tables and maps for the old limits are removed."""
    wide = {"minimum": -_WIDE, "maximum": _WIDE}
    changes: dict[str, object] = {}
    for f in fields(params) if is_dataclass(params) else ():
        value = getattr(params, f.name)
        if f.name in wide and f.name not in kept and isinstance(value, int):
            changes[f.name] = wide[f.name]
        elif f.name in _DERIVED:
            changes[f.name] = None
        elif is_dataclass(value) and not isinstance(value, type):
            changes[f.name] = _widened(value, kept)
    return replace(params, **changes) if changes else params  # type: ignore[type-var]


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
    """The windows of a convolution or pool are one row or column off; beyond the border they read the zero point."""
    if not s.inputs or not (s.operator in LINEAR or s.operator in ("mean", "reduce") or "pool" in s.operator):
        return
    t = s.inputs[0]
    x = s.values[t]
    if x.ndim != 5:
        return
    fill = s.zero_point(t)
    for rows, columns, words in _OFF:
        made = x
        for axis, k in ((2, rows), (3, columns)):
            if k:
                made = np.roll(made, -k, axis)
                np.moveaxis(made, axis, 0)[-1 if k > 0 else 0] = fill
        yield Prediction(f"windows are {words}", s.run({t: made}))
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
    """A resize takes the centers of pixels or the corners otherwise, or is of the other kind."""
    if not s.operator.startswith("resize"):
        return
    attributes = s.graph.nodes[s.main].attributes
    own = (bool(attributes.get("align_corners")), bool(attributes.get("half_pixel_centers")))
    for corners, centers, words in (
        (False, False, "takes pixels at their upper left corners"),
        (True, False, "aligns the corners of both images"),
        (False, True, "takes pixels at their centers"),
    ):
        if (corners, centers) != own:
            changed = {"align_corners": corners, "half_pixel_centers": centers}
            yield Prediction(f"resize {words}", s.rerun(attributes=changed))
    for operator in ("resize_bilinear", "resize_nearest_neighbor"):
        if operator != s.operator:
            yield Prediction(f"resize is {operator.replace('_', ' ')}", s.rerun(operator=operator))


def filling(s: Suspect) -> Iterator[Prediction]:
    """A PAD fills with another number: elements that do not depend on the input are the filling."""
    if "pad" not in s.operator or not s.inputs or s.got.dtype.kind not in "iu":
        return
    t = s.inputs[0]
    x = s.values[t]
    kind = np.iinfo(x.dtype.name)
    is_filling = s.run({t: np.full_like(x, kind.min)}) == s.run({t: np.full_like(x, kind.max)})
    if not is_filling.any():
        return
    for v in dict.fromkeys((0, s.zero_point(t), kind.min, kind.max, *_most_common(s.got[is_filling]))):
        if kind.min <= v <= kind.max:
            yield Prediction(f"filling is {v}", np.where(is_filling, np.asarray(v, s.sound.dtype), s.sound))


def _most_common(values: Array) -> list[int]:
    numbers, counts = np.unique(values, return_counts=True)
    return [int(numbers[np.argmax(counts)])]

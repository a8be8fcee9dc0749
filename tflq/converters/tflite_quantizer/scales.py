"""From real ranges to scales, zero points and quantized values, as TFLite's quantization specification has them.

Scales are float32. All are at least 2^-60, so that the product of two, which is a bias's scale, is a normal float32.
Tensors that operators bind together share scale and zero point.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from tflq.arrays import Doubles, Singles
from tflq.converters.passes.requirements import refuse_missing_ranges
from tflq.converters.passes.rewrite import channel_maxima
from tflq.converters.tflite_quantizer.choose_kinds import Choice
from tflq.converters.tflite_quantizer.prepare import Prepared
from tflq.converters.tflite_quantizer.rules import Rule, rule_of
from tflq.errors import UnsupportedError
from tflq.graph import ABSENT, Affine, Array, DType, Graph, Node
from tflq.interpreter.numerics.fixed_point import round_half_away

BITS = {"int8": 8, "int16x8": 16}
"""Width of an activation."""

_SMALLEST_SCALE = 2.0**-60
_MOST_BIAS = {"int8": 2.0**30, "int16x8": 2.0**39}
"""Largest magnitude of a bias in units of its scale: half of int32, and what a 16x8 kernel has left of 40 bits."""


def activation(low: float, high: float, kind: str, symmetric: bool = False, narrow: bool = False) -> Affine:
    """Return the quantization of an activation.

    The range is widened to hold 0; one that is 0 only becomes [0, 1].
    int8: scale = f32((high - low) / 255), zero point = clamp(rha(-128 - low / scale)), so that 0 has a quantized value
        of its own
    (rha: round half away from zero). Narrow: quantized values from -127, 254 steps. Symmetric int8: max|.| / 127,
    int16: max|.| / 32767, zero point 0.

    Raises:
        UnsupportedError: a bound that is NaN or infinite.
    """
    if not np.isfinite([low, high]).all():
        raise UnsupportedError(f"range [{low:g}, {high:g}]; both bounds must be finite: calibrate on other samples")
    low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        high = 1.0
    bits = BITS[kind]
    top = (1 << (bits - 1)) - 1
    if symmetric or bits == 16:
        return Affine.per_tensor(_scale(max(-low, high) / top), 0, bits)
    bottom = -128 + narrow
    scale = _scale((high - low) / (top - bottom))
    zero_point = int(np.clip(round_half_away(np.float64(bottom - low / float(scale))), bottom, top))
    return Affine.per_tensor(scale, zero_point, bits)


@dataclass(frozen=True, eq=False)
class WeightScales:
    """How weights become quantized values.

    Attributes:
        affine: as the file states it.
        steps: quantized values are -steps..steps.
        largest: float32[1] or [C], the magnitude that `steps` stands for.
    """

    affine: Affine
    steps: int
    largest: Singles


def weights(
    values: Array,
    axis: int | None,
    bias: Doubles | None,
    input_scale: float,
    kind: str,
    half_range: float | None,
    steps: int,
) -> WeightScales:
    """Return the symmetric quantization of weights: scale[c] = f32(max|w[c]| / steps), zero points 0.

    A channel of zeros takes the largest scale of the others. A scale grows until |bias| / (input_scale * scale) is at
    most 2^30, or 2^39 for 16x8.

    Args:
        values: real weights.
        axis: of the channels; None for one scale.
        bias: float64[C], or None.
        input_scale: 0 where the bias stays float.
        kind: "int8" or "int16x8".
        half_range: the largest weight that the model states, in place of that of the values.
        steps: quantized values are -steps..steps.

    Raises:
        UnsupportedError: a weight that is NaN or infinite.
    """
    reals = values.astype(np.float64)
    if not np.isfinite(reals).all():
        raise UnsupportedError("a weight is NaN or infinite; weights must be finite")
    largest = channel_maxima(reals, axis)
    if half_range is not None:
        largest = np.full_like(largest, half_range)
    largest = np.where(largest > 0, largest, largest.max(initial=0.0) or 1.0)
    if bias is not None and input_scale:
        needed = steps * np.abs(bias) / (input_scale * _MOST_BIAS[kind])
        largest = np.maximum(largest, needed if axis is not None else needed.max(initial=0.0))
    largest = np.maximum(largest, steps * _SMALLEST_SCALE)
    rounded = (largest / steps).astype(np.float32)
    own = axis if rounded.size > 1 else None
    affine = Affine(rounded, np.zeros(rounded.size, np.int64), own, narrow_range=True)
    return WeightScales(affine, steps, largest.astype(np.float32))


def codes(values: Array, affine: Affine) -> Array:
    """Return clip(rha(f32(x / scale)) + zero_point), as TFLite's QUANTIZE computes it: int8, int16 or uint8[*shape]."""
    scale, zero_point = affine.along(values.ndim)
    with np.errstate(over="ignore"):  # a padding value that stands for minus infinity
        ratio = values.astype(np.float32) / scale.astype(np.float32)
    found = round_half_away(np.clip(ratio.astype(np.float64), -(2.0**31), 2.0**31)) + zero_point
    kept = np.clip(found, affine.minimum_code, affine.maximum_code)
    narrow = np.int8 if affine.signed else np.uint8
    return np.asarray(kept.astype(narrow if affine.bits == 8 else np.int16))


def unsigned(affine: Affine | None) -> Affine | None:
    """Return the uint8 quantization that stands for the same real numbers as one of int8; others as they are."""
    if affine is None or affine.bits != 8 or not affine.signed:
        return affine
    return Affine.per_tensor(affine.scale[0], int(affine.zero_point[0]) + 128, 8, signed=False)


def weight_codes(values: Array, found: WeightScales, is_hybrid: bool) -> Array:
    """Return clip(rha(f32(w * f32(steps / largest))), -steps, steps): int8[*shape].

    The product with a rounded reciprocal decides ties, where `quantized values` divides by the scale: a weight of 63.5
    steps becomes 63 or 64. Beside float activations it is rha(w / (largest / steps)) in float64.

    Source: TFLite tools/optimize/quantization_utils.cc, SymmetricPerChannelQuantization; TensorFlow
    compiler/mlir/quantization/common/uniform_quantized_types.cc and MLIR's UniformSupport.h for float activations.
    """
    shape = [1] * values.ndim
    if found.affine.axis is not None:
        shape[found.affine.axis] = -1
    if is_hybrid:
        ratio = values.astype(np.float64) / (found.largest.astype(np.float64) / found.steps).reshape(shape)
    else:
        inverse = (np.float32(found.steps) / found.largest).astype(np.float32).reshape(shape)
        with np.errstate(over="ignore"):
            ratio = (values.astype(np.float32) * inverse).astype(np.float64)
    return np.asarray(np.clip(round_half_away(ratio), -found.steps, found.steps).astype(np.int8))


def bias_codes(values: Array, scale: Doubles, kind: str) -> Array:
    """Return rha(b / scale): int32[C], or int64[C] for 16x8."""
    kept = round_half_away(values.astype(np.float64) / scale)
    most = 2.0**31 - 1 if kind == "int8" else 2.0**62
    return np.asarray(np.clip(kept, -most, most).astype(np.int32 if kind == "int8" else np.int64))


def _scale(value: float) -> np.float32:
    scale: np.float32 = np.float32(max(value, _SMALLEST_SCALE))
    return scale


Key = tuple[int, str]
"""A tensor in one kind: an activation may be needed as int8 here and as int16 there."""


def activation_inputs(graph: Graph, node: Node) -> Iterator[tuple[int, int]]:
    """Yield (position, tensor) of the real-valued inputs that are neither weights nor bias."""
    rule = rule_of(node)
    special = (rule.filter.weights, rule.filter.bias) if rule and rule.filter else ()
    for position, t in enumerate(node.inputs):
        if t != ABSENT and position not in special and graph.tensors[t].dtype is DType.FLOAT32:
            yield position, t


def activation_outputs(graph: Graph, node: Node) -> tuple[int, ...]:
    """Return the real-valued outputs."""
    return tuple(t for t in node.outputs if graph.tensors[t].dtype is DType.FLOAT32)


@dataclass
class _Group:
    """Tensors with one quantization."""

    bounds: tuple[float, float] | None = None
    fixed: Affine | None = None
    narrow: bool = False

    def fits(self, other: _Group) -> bool:
        """Whether the values of another group have quantized values here, where the scale is fixed."""
        if self.fixed is None or other.bounds is None:
            return True
        scale, zero_point = float(self.fixed.scale[0]), int(self.fixed.zero_point[0])
        low, high = (scale * (q - zero_point) for q in (self.fixed.minimum_code, self.fixed.maximum_code))
        return low - scale <= other.bounds[0] and other.bounds[1] <= high + scale


@dataclass
class Scales:
    """The quantization of every activation.

    Attributes:
        prepared: the float network.
        symmetric: whether zero points of int8 activations are 0.
    """

    prepared: Prepared
    symmetric: bool = False
    _parents: dict[Key, Key] = field(default_factory=dict)
    _groups: dict[Key, _Group] = field(default_factory=dict)

    def of(self, t: int, kind: str) -> Affine:
        """Return the quantization of a computed tensor.

        Raises:
            UnsupportedError: it has no range.
        """
        group = self._groups[self._root((t, kind))]
        if group.fixed is not None:
            return group.fixed
        name = self.prepared.graph.tensors[t].name
        if group.bounds is None:
            raise UnsupportedError(f"tensor '{name}' has no range")
        try:
            return activation(*group.bounds, kind, self.symmetric, group.narrow)
        except UnsupportedError as error:
            raise UnsupportedError(f"tensor '{name}': {error}") from None

    def of_constant(self, t: int, kind: str) -> Affine:
        """Return the quantization of a constant activation: of the range of its own values, or of FAKE_QUANT."""
        tensor, stated = self.prepared.graph.tensors[t], self.prepared.stated.get(t)
        assert tensor.data is not None
        bounds = (float(tensor.data.min(initial=0.0)), float(tensor.data.max(initial=0.0)))
        if stated is not None:
            bounds = (stated.minimum, stated.maximum)
        try:
            return activation(*bounds, kind, self.symmetric, stated is not None and stated.narrow)
        except UnsupportedError as error:
            raise UnsupportedError(f"constant '{tensor.name}': {error}") from None

    def has_range(self, t: int, kind: str) -> bool:
        """Whether `of` can answer."""
        group = self._groups[self._root((t, kind))]
        return group.fixed is not None or group.bounds is not None

    def fix(self, t: int, kind: str, scale: float, zero_point: int) -> None:
        """Give a tensor the one quantization that its kernel can write."""
        self._groups[self._root((t, kind))].fixed = Affine.per_tensor(np.float32(scale), zero_point, BITS[kind])

    def bind(self, a: int, b: int, kind: str) -> None:
        """Let two tensors share their quantization, where a fixed scale does not cut off values."""
        first, second = self._root((a, kind)), self._root((b, kind))
        if first == second:
            return
        one, two = self._groups[first], self._groups[second]
        if not one.fits(two) or not two.fits(one) or (one.fixed and two.fixed and one.fixed != two.fixed):
            return
        bounds = [g.bounds for g in (one, two) if g.bounds is not None]
        one.fixed = one.fixed or two.fixed
        one.narrow = all(g.narrow for g in (one, two) if g.bounds is not None) and bool(bounds)
        one.bounds = (min(b[0] for b in bounds), max(b[1] for b in bounds)) if bounds else None
        self._parents[second] = first

    def _root(self, key: Key) -> Key:
        if key not in self._parents:
            self._parents[key] = key
            found = self.prepared.graph.tensors[key[0]].range
            stated = self.prepared.stated.get(key[0])
            bounds = None if found is None else (float(found.minimum.min()), float(found.maximum.max()))
            self._groups[key] = _Group(bounds, None, stated is not None and stated.narrow)
        while self._parents[key] != key:
            key = self._parents[key]
        return key


def choose_scales(prepared: Prepared, choices: Sequence[Choice], symmetric: bool) -> Scales:
    """Return the quantizations that the integer nodes need.

    Operators that share one scale bind their outputs and, where it is their only activation or nobody else reads it,
    their inputs; another input is converted in front of them.

    Raises:
        UnsupportedError: tensors without a range, all at once.
    """
    graph, scales = prepared.graph, Scales(prepared, symmetric)
    chosen = [(node, choice.kind) for node, choice in zip(graph.nodes, choices, strict=True) if choice.is_integer]
    rules = [rule_of(node) or Rule() for node, _ in chosen]
    for (node, kind), rule in zip(chosen, rules, strict=True):
        for t in activation_outputs(graph, node) if kind in rule.fixed else ():
            scales.fix(t, kind, *rule.fixed[kind])
    readers = graph.consumers()
    for (node, kind), rule in zip(chosen, rules, strict=True):
        if rule.same:
            _bind(scales, node, kind, readers)
    _require_ranges(scales, chosen)
    return scales


def _bind(scales: Scales, node: Node, kind: str, readers: dict[int, list[int]]) -> None:
    graph = scales.prepared.graph
    outputs = activation_outputs(graph, node)
    inputs = [t for _, t in activation_inputs(graph, node) if graph.tensors[t].data is None]
    for t in outputs[1:]:
        scales.bind(outputs[0], t, kind)
    for t in inputs if outputs else ():
        if len(inputs) == 1 or (len(readers[t]) == 1 and t not in graph.outputs):
            scales.bind(outputs[0], t, kind)


def _require_ranges(scales: Scales, chosen: Sequence[tuple[Node, str]]) -> None:
    graph = scales.prepared.graph
    needed = dict.fromkeys(
        (t, kind)
        for node, kind in chosen
        for t in (*(t for _, t in activation_inputs(graph, node)), *activation_outputs(graph, node))
        if graph.tensors[t].data is None
    )
    missing = [graph.tensors[t].name for t, kind in needed if not scales.has_range(t, kind)]
    way_out = (
        "calibrate the model on samples (--calibrate), give a file of ranges (--ranges), or train it with FAKE_QUANT "
        "operators; type=weights and type=hybrid need no ranges"
    )
    refuse_missing_ranges(missing, len(needed), way_out)

"""Levels: FakeQuantize of reals, whole and in halves, and the integer codes of levels.

Code = level index + smallest quantized value. A tensor of quantized values has the affine quantization of its output
range. The node that writes it may state another input range (attributes levels, input_low, input_high, output_low,
output_high), as FakeQuantize can; without them it is the same.

FAKE_QUANTIZE is float32, as in OpenVINO's CPU plug-in (docs/rules/openvino.md#levels-as-integers): index = 0 if x <=
min(il, ih), levels - 1 if x > max(il, ih), else round half even(f32(f32(x * a) + b)) with a = f32(f32(levels - 1) /
f32(ih - il)) and b = f32(-il * a); value = index / (levels - 1) * (oh - ol) + ol. The published formula divides by ih -
il for each x instead; indices then differ if x is within a few ULP of a half.

QUANTIZE is the first half, reals to quantized values by that formula; or Requantize only, quantized values to the
quantized values of another range: S * (q - Z) in float64, then the output's levels. DEQUANTIZE is the second half:
f32((q - Z) * S), the product in float64 (docs/rules/openvino.md#quantize-dequantize-requantize).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Doubles, Singles
from tflq.errors import GraphError
from tflq.graph import Affine, Array, DType, FakeQuantize, Node, Operands, Tensor
from tflq.graph.attributes import Attribute
from tflq.interpreter.layers.reals import RealLine
from tflq.interpreter.numerics.fixed_point import activation_bounds
from tflq.interpreter.operands.checks import require_type
from tflq.interpreter.registry import Kernel

CODES = (DType.INT8, DType.INT4, DType.INT16)
_BOUNDS = ("input_low", "input_high", "output_low", "output_high")
_NEAR = 1e-3
"""A zero point this close to a whole number is one: float32 bounds hold no better."""


@dataclass(frozen=True, eq=False)
class Levels:
    """How reals become codes: clip(round half even(real / scale + zero), 0, levels - 1) + first.

    The half is rounded to the even level index, not to the even code.

    Attributes:
        scale: float64[1] or [C], real distance of two levels.
        zero: float64[1] or [C], level index of real zero; whole in ranges that are nudged.
        levels: Number of levels.
        first: code of level 0.
        dtype: storage of the quantized values.
    """

    scale: Doubles
    zero: Doubles
    levels: int
    first: int
    dtype: np.dtype[np.generic]

    def codes(self, real: Doubles) -> Array:
        """Return quantized values of float64[..., C]; NaN becomes level 0."""
        with np.errstate(invalid="ignore"):
            index = np.clip(np.rint(real / self.scale + self.zero), 0, self.levels - 1)
        return np.asarray((np.where(np.isnan(index), 0, index) + self.first).astype(self.dtype))


def levels_of(node: Node, output: Tensor) -> Levels | None:
    """Return the levels of a node's output; None if that is real.

    Raises:
        GraphError: a range that is empty or inverted, or levels that do not fit the type.
    """
    if output.dtype.is_floating:
        return None
    rule, affine = input_rule(node, output), output.affine
    low, high = rule.input_low.astype(np.float64), rule.input_high.astype(np.float64)
    scale = np.atleast_1d((high - low) / (rule.levels - 1))
    zero = np.atleast_1d(-low / scale)
    whole = np.rint(zero)
    zero = np.where(np.isclose(zero, whole, rtol=0, atol=_NEAR), whole, zero)
    return Levels(scale, zero, rule.levels, affine.minimum_code, output.dtype.storage)


def input_rule(node: Node, output: Tensor) -> FakeQuantize:
    """Return the FakeQuantize that defines a node's level indices: its attributes, or else the output's own range.

    Raises:
        GraphError: attributes that do not fit the output's quantized values.
    """
    own = rule_of(output.affine)
    if "levels" not in node.attributes:
        return own
    rule = stated_rule(node)
    if rule.levels != own.levels:
        raise GraphError(f"'{output.name}' has {own.levels} quantized values; levels is {rule.levels}")
    return rule


def rule_attributes(rule: FakeQuantize) -> dict[str, Attribute]:
    """Return a rule as attributes of the node that writes its levels."""
    bounds = {name: tuple(float(v) for v in getattr(rule, name).reshape(-1)) for name in _BOUNDS}
    return {"levels": rule.levels, **bounds}


def stated_rule(node: Node) -> FakeQuantize:
    """Return the rule that a node's attributes state.

    Raises:
        GraphError: an attribute is missing or no number.
    """
    bounds = []
    for name in _BOUNDS:
        value = node.attributes.get(name)
        if not isinstance(value, tuple):
            raise GraphError(f"attribute {name}: found {value!r}, allowed is a list of numbers")
        bounds.append(np.array(value, np.float32))
    return FakeQuantize(node.attributes.integer("levels"), *bounds)


def rule_of(affine: Affine) -> FakeQuantize:
    """Return the FakeQuantize that an affine quantization is.

    Low = S * (smallest quantized value - Z), high = S * (largest - Z).

    Products in float64, bounds rounded to float32 once.
    """
    scale = affine.scale.astype(np.float64)
    low = (scale * (affine.minimum_code - affine.zero_point)).astype(np.float32)
    high = (scale * (affine.maximum_code - affine.zero_point)).astype(np.float32)
    return FakeQuantize(affine.maximum_code - affine.minimum_code + 1, low, high, low, high)


def affine_of(rule: FakeQuantize, axis: int | None = None) -> Affine | None:
    """Return the affine quantization of a rule's outputs.

    None if zero is no level or there is no type of quantized values.

    S = (oh - ol) / (levels - 1) in float64; Z = round(-ol / S) + smallest quantized value. Known are 2^b and 2^b - 1
    levels.

    Args:
        rule: Rule with valid bounds.
        axis: Axis of the channels, if bounds are per channel.
    """
    low, high = (np.atleast_1d(bound.astype(np.float64)) for bound in (rule.output_low, rule.output_high))
    scale = (high - low) / (rule.levels - 1)
    bits = max(1, (rule.levels - 1).bit_length())
    if bits > 16 or rule.levels not in (1 << bits, (1 << bits) - 1) or not (scale > 0).all():
        return None
    zero = -low / scale
    whole = np.rint(zero)
    if not np.isclose(zero, whole, rtol=0, atol=_NEAR).all() or (whole < 0).any() or (whole > rule.levels - 1).any():
        return None
    narrow = rule.levels == (1 << bits) - 1
    first = -(1 << (bits - 1)) + narrow
    return Affine(scale, whole.astype(np.int64) + first, axis if scale.size > 1 else None, bits, True, narrow)


def same_input_and_output(rule: FakeQuantize) -> bool:
    """Whether a rule's outputs have the range of its inputs."""
    return np.array_equal(rule.input_low, rule.output_low) and np.array_equal(rule.input_high, rule.output_high)


def code_type(affine: Affine) -> DType:
    """Return the type of the codes: int8, int16, or int4 for four bits."""
    if affine.bits == 4:
        return DType.INT4
    return DType.INT8 if affine.bits <= 8 else DType.INT16


def real_values(codes: Array, affine: Affine) -> Doubles:
    """Return (code - Z) * S in float64: [S or 1, *shape] with the sample axis first."""
    scale, zero_point = affine.along(codes.ndim - 1)
    return np.asarray((codes.astype(np.int64) - zero_point) * scale.astype(np.float64))


@dataclass(frozen=True, eq=False)
class Stored:
    """How a layer's reals are stored: clamped by the fused activation, then as quantized values or float32.

    Attributes:
        minimum: lower bound of the fused activation, infinite if there is none.
        maximum: upper bound, likewise.
        levels: Levels of the output; None for float32.
    """

    minimum: float
    maximum: float
    levels: Levels | None

    @staticmethod
    def of_output(node: Node, output: Tensor) -> Stored:
        """Return how a node stores its output; raises as `levels_of`."""
        low, high = activation_bounds(node.attributes.text("fused_activation_function", "none"))
        return Stored(-np.inf if low is None else low, np.inf if high is None else high, levels_of(node, output))

    def clamp(self, real: Doubles) -> Doubles:
        """Apply the fused activation's bounds."""
        if self.minimum == -np.inf and self.maximum == np.inf:
            return real
        return np.clip(real, self.minimum, self.maximum)

    def apply(self, real: Doubles) -> Array:
        """Return quantized values, or float32."""
        return finish(self.clamp(real), self.levels)


def finish(real: Doubles, levels: Levels | None) -> Array:
    """Return quantized values, or float32 if the output is not quantized."""
    return np.asarray(real.astype(np.float32)) if levels is None else levels.codes(real)


def require_sound(rule: FakeQuantize, where: str) -> None:
    """Refuse ranges that the runtime accepts but computes nonsense from.

    Raises:
        GraphError: levels below 2; bounds that are not finite; an input range that is empty (the CPU plug-in then
            returns NaN) or inverted (it flips signs); an output range that is empty (a scale of zero).
    """
    if rule.levels < 2:
        raise GraphError(f"{where}: levels is {rule.levels}; at least 2 are needed")
    for side, low, high in (
        ("input", rule.input_low, rule.input_high),
        ("output", rule.output_low, rule.output_high),
    ):
        pair = np.broadcast_arrays(low, high)
        values = np.stack([np.asarray(v, np.float32).reshape(-1) for v in pair])
        if not np.isfinite(values).all():
            raise GraphError(f"{where}: {side} range has {values[~np.isfinite(values)][0]}; bounds are finite")
        equal, inverted = values[0] == values[1], values[0] > values[1]
        if equal.any():
            at = values[0][equal][0]
            raise GraphError(f"{where}: {side}_low and {side}_high are both {at:g}, a scale of zero; they must differ")
        if side == "input" and inverted.any():
            first = int(np.argmax(inverted))
            raise GraphError(
                f"{where}: input_low {values[0][first]:g} is above input_high {values[1][first]:g}; swap them"
            )


def line_of(rule: FakeQuantize) -> tuple[Singles, Singles]:
    """Return a and b of an index, float32 as the bounds are."""
    low, high = rule.input_low.astype(np.float32), rule.input_high.astype(np.float32)
    with np.errstate(all="ignore"):
        scale = np.float32(rule.levels - 1) / (high - low)
        return scale, -low * scale


def level_indices(x: Singles, rule: FakeQuantize) -> Singles:
    """Return indices 0..levels-1 as float32[..., C]; bounds are scalars or [C] along the last axis. NaN gives 0.

    Ranges are taken literally, inverted ones included; `require_sound` refuses them.
    """
    low, high = rule.input_low.astype(np.float32), rule.input_high.astype(np.float32)
    top = np.float32(rule.levels - 1)
    scale, shift = line_of(rule)
    with np.errstate(all="ignore"):
        smallest, largest = np.minimum(low, high), np.maximum(low, high)
        index = np.rint(np.clip(x, smallest, largest) * scale + shift)
        # NaN is not above the lower bound.
        result = np.where(x > largest, top, np.where(x > smallest, np.clip(index, 0, top), np.float32(0)))
    return np.asarray(result, np.float32)


def level_values(index: Singles, rule: FakeQuantize) -> Singles:
    """Return index / (levels - 1) * (oh - ol) + ol, float32[..., C], each operation rounded."""
    low, high = rule.output_low.astype(np.float32), rule.output_high.astype(np.float32)
    return np.asarray(index / np.float32(rule.levels - 1) * (high - low) + low, np.float32)


_LEAST_RANGE = 1e-30
"""Of real numbers, above which levels - 1 over it is a finite float32."""


@dataclass(frozen=True, eq=False)
class QuantizeParams:
    """The params of one quantization.

    Attributes:
        rule: levels and bounds.
        levels: Rule from exact reals to quantized values.
        source: Quantization of a quantized input; None for reals.
    """

    rule: FakeQuantize
    levels: Levels
    source: Affine | None

    @property
    def never_falls(self) -> bool:
        """Whether results never fall while reals rise: products, roundings, sums and clips of one range do not."""
        low, high = self.rule.input_low, self.rule.input_high
        return self.source is None and low.size == high.size == 1 and high.item() - low.item() > _LEAST_RANGE

    @property
    def line(self) -> RealLine:
        """The rule without its bounds, if it `never_falls`."""
        scale, shift = line_of(self.rule)
        return RealLine(scale.item(), shift.item(), self.levels.first, is_away=False)


def lower_quantize(node: Node, operands: Operands) -> QuantizeParams:
    """Decide the params of QUANTIZE.

    Raises:
        UnsupportedError: other types than float32 or quantized values.
        GraphError: as `require_sound`.
    """
    source, output = operands.input(0), operands.output()
    require_type(source, (DType.FLOAT32, *CODES))
    require_type(output, CODES)
    rule = input_rule(node, output)
    require_sound(rule, f"'{output.name}'")
    levels = levels_of(node, output)
    assert levels is not None  # the output has quantized values
    return QuantizeParams(rule, levels, source.affine if source.dtype.is_integer else None)


def run_quantize(params: QuantizeParams, x: Array) -> tuple[Array, ...]:
    """Run QUANTIZE: float32 or quantized [S, ..., C] -> quantized [S, ..., C]."""
    if params.source is not None:
        return (params.levels.codes(real_values(x, params.source)),)
    index = level_indices(np.asarray(x, np.float32), params.rule)
    return ((index + np.float32(params.levels.first)).astype(params.levels.dtype),)


def lower_dequantize(node: Node, operands: Operands) -> Affine:  # noqa: ARG001
    """Return the scale and zero point.

    Raises:
        UnsupportedError: other types.
        GraphError: quantized values without a scale.
    """
    require_type(operands.input(0), CODES)
    require_type(operands.output(), (DType.FLOAT32,))
    return operands.input(0).affine


def run_dequantize(params: Affine, x: Array) -> tuple[Array, ...]:
    """Run DEQUANTIZE: quantized [S, ..., C] -> float32[S, ..., C]."""
    return (real_values(x, params).astype("float32"),)


def lower_fake_quantize(node: Node, operands: Operands) -> FakeQuantize:  # noqa: ARG001
    """Return the rule that the output carries.

    Raises:
        UnsupportedError: another type than float32.
        GraphError: an output without a rule, or one that `require_sound` refuses.
    """
    output = operands.output()
    for tensor in (operands.input(0), output):
        require_type(tensor, (DType.FLOAT32,))
    rule = output.quantization
    if not isinstance(rule, FakeQuantize):
        raise GraphError(f"'{output.name}' states no levels and ranges")
    require_sound(rule, f"'{output.name}'")
    return rule


def run_fake_quantize(params: FakeQuantize, x: Singles) -> tuple[Array, ...]:
    """Run FAKE_QUANTIZE: float32[S, ..., C] -> float32[S, ..., C]."""
    return (level_values(level_indices(x, params), params),)


KERNELS = {
    "quantize": Kernel(lower_quantize, run_quantize, "the level of a real, in float32", "docs/rules/openvino.md"),
    "dequantize": Kernel(
        lower_dequantize, run_dequantize, "f32((q - Z) * S)", "docs/rules/openvino.md#quantize-dequantize-requantize"
    ),
    "fake_quantize": Kernel(
        lower_fake_quantize, run_fake_quantize, "value of a real's level", "docs/rules/openvino.md#levels-as-integers"
    ),
}

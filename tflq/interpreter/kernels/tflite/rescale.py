"""From accumulators of CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED to quantized values; the bias's scale.

Source: docs/rules/tflite/index.md.

y = clamp(round(total * scale) + zero_point, minimum, maximum), total = acc + bias wrapped to the accumulator's width.
TFLite and the other runtimes of its files round in different ways (docs/guides/runtimes.md). If all totals that can
occur stay in range, a proven StepMaps replaces them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from tflq.arrays import Doubles, Integers, Singles
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Affine, Array, DType, Node, Tensor
from tflq.interpreter.accumulate.products import FLOAT32_EXACT
from tflq.interpreter.numerics.fixed_point import (
    INT32_MAX,
    INT32_MIN,
    activation_range,
    float_to_int32,
    multiply_by_quantized_multiplier,
    multiply_by_quantized_multiplier_64,
    multiply_by_quantized_multiplier_once,
    multiply_by_quantized_multiplier_up,
    quantize_multiplier,
    round_half_away,
    wrap_int32,
)
from tflq.interpreter.numerics.requantize import StepMaps, fit_step_map, requantize
from tflq.interpreter.numerics.step_map import StepMap
from tflq.interpreter.numerics.thresholds import of_quantized_multiplier
from tflq.interpreter.operands.checks import per_tensor

SAFE = float((1 << 31) - (1 << 17))
"""Totals and results below it neither wrap int32 nor touch its ends once a zero point is added."""
SAFE_64 = float(1 << 47)
"""Bound on the accumulator of MBQ64."""


class Rounding(Enum):
    """How total * scale becomes an integer.

    DOUBLE: MBQ, a 31-bit multiplier, rounded twice (8 bits; 16x8 with int32 accumulators).
    SINGLE_64: MBQ64, a 15-bit multiplier, rounded once (16x8 with int64 accumulators).
    REAL: round_half_away(float64(total) * scale), no fixed-point multiplier (FULLY_CONNECTED of the reference kernels).
    UP: as DOUBLE, ties of the second rounding up (TFLite's optimized kernels).
    UP_BY_EIGHT: UP for the first 8 * floor(O / 8) channels (vectors), DOUBLE for the rest.
    SINGLE: a 31-bit multiplier, rounded once, half up (CMSIS-NN with single rounding).
    FLOAT32: round_half_even(float32(total) * scale) with a float32 scale and product (XNNPACK).
    """

    DOUBLE = "double"
    SINGLE_64 = "single_64"
    REAL = "real"
    UP = "up"
    UP_BY_EIGHT = "up_by_eight"
    SINGLE = "single"
    FLOAT32 = "float32"


FIXED_POINT_TWICE = (Rounding.DOUBLE, Rounding.UP, Rounding.UP_BY_EIGHT)
"""Roundings that shift the total left by a positive shift, where int32 wraps."""


@dataclass(frozen=True, eq=False)
class Rule:
    """The rule from totals to quantized values.

    Attributes:
        rounding: Rounding of the last step.
        scale: float64[O], quantized values per unit of the total; for FLOAT32 values of float32.
        multiplier: int64[O], of `quantize_multiplier`; not used by REAL and FLOAT32.
        shift: int64[O].
        accumulator_bits: 32 (wraps) or 64.
        zero_point: Zero point of the output.
        minimum: smallest quantized value after the fused activation.
        maximum: largest quantized value.
        dtype: Type of the output.
    """

    rounding: Rounding
    scale: Doubles
    multiplier: Integers
    shift: Integers
    accumulator_bits: int
    zero_point: int
    minimum: int
    maximum: int
    dtype: DType

    def exact(self, total: Integers) -> Integers:
        """Return the quantized values of totals int64[..., O], by TFLite's own integer operations."""
        wrapped = wrap_int32(total) if self.accumulator_bits == 32 else total
        return np.clip(wrap_int32(self._scale(wrapped) + self.zero_point), self.minimum, self.maximum)

    def _scale(self, total: Integers) -> Integers:
        """Return round(total * scale) of totals int64[..., O]."""
        rounding, constants = self.rounding, (self.multiplier, self.shift)
        if rounding is Rounding.DOUBLE:
            return multiply_by_quantized_multiplier(total, *constants)
        if rounding is Rounding.SINGLE_64:
            return multiply_by_quantized_multiplier_64(total, *constants)
        if rounding is Rounding.SINGLE:
            return multiply_by_quantized_multiplier_once(total, *constants)
        if rounding is Rounding.REAL:
            return float_to_int32(round_half_away(total.astype(np.float64) * self.scale))
        if rounding is Rounding.FLOAT32:
            return round_product_in_float32(total, self.scale.astype(np.float32))
        return multiply_by_quantized_multiplier_up(total, *constants, self._count_away())

    def _count_away(self) -> Integers:
        """Return int64[O]: 1 for channels that round half away from zero, 0 for channels that round up."""
        outputs = self.multiplier.size
        vectors = outputs // 8 * 8 if self.rounding is Rounding.UP_BY_EIGHT else outputs
        return (np.arange(outputs) >= vectors).astype(np.int64)


def round_product_in_float32(total: Integers, scale: Singles | np.float32) -> Integers:
    """Return round_half_even(float32(total) * scale), cut to int32 if it does not fit."""
    product = total.astype(np.float32) * scale
    rounded: Integers = np.clip(np.rint(product).astype(np.float64), INT32_MIN, INT32_MAX).astype(np.int64)
    return rounded


@dataclass(frozen=True, eq=False)
class Rescale:
    """A rule with the bias of one layer.

    Attributes:
        rule: Rule from totals to quantized values.
        bias: int64[O], the bias with the input's zero point folded in: bias - zero_point * sum(w).
        step_map: proven equal to the rule for all accumulators that can occur; None if totals can wrap or no map is
            proven.
    """

    rule: Rule
    bias: Integers
    step_map: StepMaps | None

    def exact(self, accumulators: Integers) -> Integers:
        """Return the quantized values of accumulators int64[..., O] by the integer rule."""
        return self.rule.exact(accumulators + self.bias)

    def reach(self, codes: Integers) -> Integers:
        """Return the smallest accumulators with quantized values of at least `codes`, by Rounding.DOUBLE unwrapped."""
        rule = self.rule
        return of_quantized_multiplier(codes - rule.zero_point, rule.multiplier, rule.shift) - self.bias

    def apply(self, accumulators: Array) -> Array:
        """Return the quantized values of exact accumulators [..., O] in the output's storage type."""
        return requantize(self.step_map, self.exact, accumulators, self.rule.dtype.storage)


def effective_scale(
    x: Tensor, weights: Tensor, output: Tensor, outputs: int, rounding: Rounding, product_in_float32: bool
) -> Doubles:
    """Return si * sw / so for each output channel: float64[O].

    Args:
        x: Input, quantized per tensor.
        weights: Weights with one scale, or one for each output channel.
        output: Output, quantized per tensor.
        outputs: Number of output channels.
        rounding: Rounding of the last step; FLOAT32 computes product and quotient in float32, any other one in float64.
        product_in_float32: Whether si * sw is rounded to float32 before the division.

    Raises:
        GraphError: another number of scales.
    """
    si, so = per_tensor(x)[0], per_tensor(output)[0]
    sw = weights.affine.scale.astype(np.float32)
    if sw.size not in (1, outputs):
        raise GraphError(f"weights '{weights.name}' have {sw.size} scales; allowed are 1 or {outputs}")
    if rounding is Rounding.FLOAT32:
        scale: Doubles = ((si * sw) / so).astype(np.float64)
    elif product_in_float32:
        scale = (si * sw).astype(np.float64) / np.float64(so)
    else:
        scale = np.float64(si) * sw.astype(np.float64) / np.float64(so)
    return np.array(np.broadcast_to(scale, (outputs,)))


def make_rule(node: Node, output: Tensor, scale: Doubles, rounding: Rounding, accumulator_bits: int) -> Rule:
    """Take zero point, fused activation and type from the output.

    Args:
        node: Node with the fused activation.
        output: quantized per tensor.
        scale: float64[O].
        rounding: Rounding of the operator.
        accumulator_bits: 32 or 64.
    """
    output_scale, zero_point = per_tensor(output)
    activation = node.attributes.text("fused_activation_function", "none")
    low, high = activation_range(activation, output_scale, zero_point, output.dtype.minimum, output.dtype.maximum)
    multiplier, shift = quantize_multiplier(scale)
    return Rule(rounding, scale, multiplier, shift, accumulator_bits, zero_point, low, high, output.dtype)


def make_rescale(rule: Rule, bias: Integers, lower: Integers, upper: Integers) -> Rescale:
    """Join rule and bias, and look for a proven map.

    Args:
        rule: Rule of the layer.
        bias: int64[O], zero points folded in.
        lower: int64[O], the smallest accumulator before the bias.
        upper: int64[O], the largest.
    """
    plain = Rescale(rule, bias, None)
    if not _stays_in_range(rule, lower + bias, upper + bias):
        return plain
    limits = (rule.zero_point, rule.minimum, rule.maximum)
    reach = plain.reach if rule.rounding is Rounding.DOUBLE else None
    maps = fit_step_map(plain.exact, rule.scale, bias, lower, upper, *limits, reach)
    if maps is not None and rule.rounding is Rounding.FLOAT32:
        maps.direct = _float32_map(rule, bias, lower, upper)
    return Rescale(rule, bias, maps)


def _float32_map(rule: Rule, bias: Integers, lower: Integers, upper: Integers) -> StepMap | None:
    """Return FLOAT32 as a map: exact because sums and totals below 2^24 are float32 numbers; else None."""
    reach = max(int(np.abs(values).max()) for values in (bias, lower, upper, lower + bias, upper + bias))
    if reach >= FLOAT32_EXACT:
        return None
    scale, offset = rule.scale.astype(np.float32), bias.astype(np.float32)
    return StepMap(scale, offset, None, None, rule.minimum, rule.maximum, after=np.float32(rule.zero_point))


def _stays_in_range(rule: Rule, lower: Integers, upper: Integers) -> bool:
    """Whether the rule is nondecreasing on all totals: no total wraps, no multiplier is negative."""
    magnitude = np.maximum(np.abs(lower), np.abs(upper)).astype(np.float64)
    left = magnitude * 2.0 ** np.maximum(rule.shift, 0)
    inside = (magnitude < (SAFE if rule.accumulator_bits == 32 else SAFE_64)) & (magnitude * rule.scale < SAFE)
    if rule.rounding in FIXED_POINT_TWICE:
        inside &= left < SAFE
    return bool(np.all(inside & (rule.scale >= 0)))


TOLERANCE = 0.02


def require_bias_scale(x: Tensor, weights: Tensor, bias: Tensor, output: Tensor) -> None:
    """Check |si sw - scale of the bias| <= 0.02 so, in float64; a bias without scale counts as 0.

    Raises:
        UnsupportedError: it is farther off; TFLite refuses the model.

    Source: TFLite kernels/kernel_util.cc, GetQuantizedConvolutionMultipler.
    """
    stated = float(bias.quantization.scale[0]) if isinstance(bias.quantization, Affine) else 0.0
    product = float(per_tensor(x)[0]) * float(per_tensor(weights)[0])
    if abs(product - stated) / float(per_tensor(output)[0]) > TOLERANCE:
        raise UnsupportedError(
            f"the bias '{bias.name}' has scale {stated}, input and weights give {product}; TFLite allows a difference "
            f"of {TOLERANCE} of the output's scale"
        )

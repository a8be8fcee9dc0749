"""CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED (MatMul): exact products, one real per accumulator, then levels.

acc = sum (q_x - Z_x) * (q_w - Z_w) over the taps inside the image, exactly; real = acc * (S_x * S_w[o]) + b[o] in
float64; the fused activation's clamp; then a level of the output (levels.py), or float32 if that is not quantized.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tflq.arrays import Doubles, Integers
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Affine, Array, Node, Operands, Tensor
from tflq.interpreter.accumulate import accumulator_range
from tflq.interpreter.kernels.openvino.levels import CODES, Stored
from tflq.interpreter.layers.linear import Scheme, linear_kernels
from tflq.interpreter.layers.reals import RealMap
from tflq.interpreter.numerics.requantize import StepMaps, fit_step_map, requantize
from tflq.interpreter.operands.checks import require_type


@dataclass(frozen=True, eq=False)
class FilterParams(Scheme):
    """The params of one filter, except its window.

    Attributes:
        weights: int64[O, ...], output channel first, their zero point taken off.
        multiplier: float64[O], S_x * S_w.
        bias: float64[O].
        zero_point: Zero points of the input, int64[1], or int64[C] with per-channel scales.
        folded: int64[O], the excess of the accumulator of stored quantized values: Z_x * sum(q_w); 0 per channel, if
            zero points are subtracted before.
        stored: Rule from reals to the output.
        step_map: proven map from accumulators to quantized values; None if the rule itself runs.
    """

    weights: Integers
    multiplier: Doubles
    bias: Doubles
    zero_point: Integers
    folded: Integers
    stored: Stored
    step_map: StepMaps | None = None

    @property
    def is_per_channel(self) -> bool:
        """Whether the input has a zero point for each channel."""
        return self.zero_point.size > 1

    @property
    def pad_value(self) -> int:
        """Value of the padding."""
        return 0 if self.is_per_channel else int(self.zero_point[0])

    @property
    def channel_zero_points(self) -> Integers | None:
        """Z_x of each channel, if there is more than one."""
        return self.zero_point if self.is_per_channel else None

    @property
    def real_map(self) -> RealMap | None:
        """Map from accumulators to floating-point values; None if the output is quantized."""
        stored = self.stored
        if stored.levels is not None:
            return None
        return RealMap(self.folded, self.multiplier, self.bias, stored.minimum, stored.maximum)

    def reals(self, accumulators: Array) -> Doubles:
        """Return floating-point values of accumulators [..., O]."""
        return (accumulators.astype(np.float64) - self.folded) * self.multiplier + self.bias

    def exact(self, accumulators: Integers) -> Integers:
        """The rule itself: int64[..., O] -> quantized values int64[..., O]."""
        return self.stored.apply(self.reals(accumulators)).astype(np.int64)

    def finish(self, accumulators: Array) -> Array:
        """Return quantized values or float32 for exact accumulators [..., O] in float32, float64 or int64."""
        if self.stored.levels is None:
            return self.stored.apply(self.reals(accumulators))
        return requantize(self.step_map, self.exact, accumulators, self.stored.levels.dtype)


def lower_filter(node: Node, operands: Operands, channel_axis: int) -> FilterParams:
    """Decide the params of one filter.

    Args:
        node: Layer with its fused activation.
        operands: quantized values, constant quantized values of weights, optional float32 bias; output of quantized
            values or float32.
        channel_axis: Axis of the weights' output channels.

    Raises:
        UnsupportedError: other types; per-channel activations before any layer except a depthwise convolution.
        GraphError: a bias that is not finite.
    """
    x, weights = operands.input(0), operands.input(1)
    require_type(x, CODES)
    affine = weights.affine
    stored = operands.constant(1).astype(np.int64)
    codes = np.moveaxis(stored - affine.along(stored.ndim)[1], channel_axis, 0)
    outputs = codes.shape[0]
    scale, zero_point = _input_scale(x.affine, channel_axis, outputs)
    multiplier = np.broadcast_to(scale * affine.scale.astype(np.float64), (outputs,))
    sums = codes.reshape(outputs, -1).sum(axis=1)
    folded = sums * int(zero_point[0]) if zero_point.size == 1 else np.zeros(outputs, np.int64)
    how = Stored.of_output(node, operands.output())
    params = FilterParams(codes, multiplier, _bias(operands, outputs), zero_point, folded, how)
    return replace(params, step_map=_fit_map(params, x))


def _input_scale(affine: Affine, channel_axis: int, outputs: int) -> tuple[Doubles, Integers]:
    """Return S_x for each output channel (or one), and Z_x for each input channel (or one)."""
    scale = affine.scale.astype(np.float64)
    if not affine.is_per_axis:
        return scale, affine.zero_point
    if channel_axis == 0:
        raise UnsupportedError(
            "activations quantized per channel; the products of several channels are summed here: one range is needed"
        )
    zero_point = np.broadcast_to(affine.zero_point, scale.shape)
    return np.repeat(scale, outputs // scale.size), np.asarray(zero_point, np.int64)


def _bias(operands: Operands, outputs: int) -> Doubles:
    tensor = operands.optional(2)
    if tensor is None:
        return np.zeros(outputs)
    bias = operands.constant(2).reshape(-1).astype(np.float64)
    if not np.isfinite(bias).all():
        raise GraphError(f"bias '{tensor.name}' has {bias[~np.isfinite(bias)][0]}; biases are finite")
    return bias


def _fit_map(params: FilterParams, x: Tensor) -> StepMaps | None:
    levels = params.stored.levels
    if levels is None or levels.scale.size > 1:
        return None
    low, high = x.dtype.minimum, x.dtype.maximum
    if params.is_per_channel:
        low, high = low - int(params.zero_point.max()), high - int(params.zero_point.min())
    lower, upper = accumulator_range(params.weights, low, high)
    slope = params.multiplier / levels.scale
    zero = float(levels.zero[0]) + levels.first
    offset = params.bias / params.multiplier - params.folded + zero / slope
    top = levels.first + levels.levels - 1
    return fit_step_map(params.exact, slope, offset, lower, upper, round(zero), levels.first, top)


KERNELS = linear_kernels(
    lower_filter, "level((acc - Z_x * sum(w)) * S_x * S_w + b), in float64", "docs/rules/openvino.md#levels-as-integers"
)

"""CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED in GAP9's arithmetic.

Source: docs/rules/gap9/quantization.md, docs/rules/gap9/filters.md.

acc = stored bias + sum x * (w - Z_w) with raw quantized values x, padding holding Z_x;
stored bias = B - Z_x * sum(w - Z_w) + rnd(Z_y * S_y / (S_x * S_w)): the output's zero point is folded in too. Then
y = clip(norm(norm(acc, pre) * M, N), qmin, qmax). NNTool's kernel works in int32, and acc * M may wrap; here products
are exact, so that such products saturate, and the channels that can wrap are listed. With numerics "nntool"
accumulators and products wrap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers, Reals
from tflq.errors import UnsupportedError
from tflq.graph import Affine, Node, Operands, Tensor
from tflq.interpreter.accumulate import accumulator_range
from tflq.interpreter.kernels.gap9.mul_bias import MulBias, mul_bias, multiplier_bits
from tflq.interpreter.kernels.gap9.rounding import round_half_up, taken_for, wrapped_norm
from tflq.interpreter.layers.linear import Scheme, linear_kernels
from tflq.interpreter.numerics.fixed_point import INT32_MAX, INT32_MIN, norm, wrap_int32
from tflq.interpreter.numerics.requantize import StepMaps, fit_step_map
from tflq.interpreter.numerics.thresholds import of_rounded_shift

LARGEST_PRE_NORMALIZATION = 8
_NARROWER = "use narrower weights, features of 8 bits, or SQ8"


@dataclass(frozen=True, eq=False)
class Rescaling:
    """The params of one epilogue.

    Attributes:
        bias: stored bias, int64[O]: quantized bias and folded zero points.
        mul_bias: M and N for each channel; N with the pre-normalization in it.
        pre_normalization: bits by which the accumulator is shifted first; 0 for 8-bit features.
        minimum: smallest quantized value of the output.
        maximum: largest quantized value.
        wraps: whether accumulators and products keep their low 32 bits.
    """

    bias: Integers
    mul_bias: MulBias
    pre_normalization: int
    minimum: int
    maximum: int
    wraps: bool = False

    @staticmethod
    def create(
        bias: Integers, mul_bias: MulBias, pre_normalization: int, output: Affine, wraps: bool = False
    ) -> Rescaling:
        """Return the epilogue with M and N of each channel.

        Args:
            bias: stored bias, int64[O].
            mul_bias: M and N, one or one for each channel.
            pre_normalization: bits.
            output: type of the result.
            wraps: Whether products wrap, as in the attribute.
        """
        wide = MulBias(
            np.broadcast_to(mul_bias.multiplier, bias.shape),
            np.broadcast_to(mul_bias.shift, bias.shape),
            np.broadcast_to(mul_bias.ratio, bias.shape),
        )
        return Rescaling(bias, wide, pre_normalization, output.minimum_code, output.maximum_code, wraps)

    @property
    def shift(self) -> Integers:
        """N as the hardware gets it: without the pre-normalization."""
        return self.mul_bias.shift - self.pre_normalization

    def exact(self, accumulators: Integers) -> Integers:
        """The rule itself: accumulators without bias, int64[..., O] -> quantized values int64[..., O]."""
        total = accumulators + self.bias
        if self.wraps:
            total = wrap_int32(total)
        if self.pre_normalization:
            total = norm(total, self.pre_normalization)
        product = total * self.mul_bias.multiplier
        scaled = (wrapped_norm if self.wraps else norm)(product, self.shift)
        return np.clip(scaled, self.minimum, self.maximum)

    def reach(self, codes: Integers) -> Integers:
        """Return the smallest accumulators without bias with quantized values of at least `codes`."""
        total = of_rounded_shift(codes, self.mul_bias.multiplier, self.shift)
        return of_rounded_shift(total, np.int64(1), np.int64(self.pre_normalization)) - self.bias

    def fit_map(self, lower: Integers, upper: Integers) -> StepMaps | None:
        """Return a map that is proven for accumulators without bias in [lower, upper], int64[O], or None."""
        if self.wraps:
            return None
        slope = self.mul_bias.multiplier * np.exp2(-self.mul_bias.shift.astype(np.float64))
        return fit_step_map(self.exact, slope, self.bias, lower, upper, 0, self.minimum, self.maximum, self.reach)


@dataclass(frozen=True, eq=False)
class FilterParams(Scheme):
    """The params of one filter, except its window.

    Attributes:
        weights: w - Z_w, int64[O, ...], output channel first.
        weight_zero_point: Z_w, 2^(bits-1) on NE16.
        weight_bits: 2..8.
        input_zero_point: Z_x.
        padding_code: Value outside the image: Z_x, which the bias folds.
        bias: quantized bias B, int64[O].
        offset: O_c, the folded zero points.
        rescaling: stored bias B + O_c, M, N.
        overflowing: Channels in which the product with M can exceed int32 and wraps in NNTool's kernel.
        dtype: storage of the quantized values.
        step_map: proven map, None if the exact rule runs.
    """

    weights: Integers
    weight_zero_point: int
    weight_bits: int
    input_zero_point: int
    padding_code: int
    bias: Integers
    offset: Integers
    rescaling: Rescaling
    overflowing: tuple[int, ...]
    dtype: np.dtype[np.generic]
    step_map: StepMaps | None

    @property
    def mul_bias(self) -> MulBias:
        """M and N for each output channel."""
        return self.rescaling.mul_bias

    @property
    def pad_value(self) -> int:
        """As `padding_code`."""
        return self.padding_code

    def exact(self, accumulators: Integers) -> Integers:
        """The rule itself, that of `Rescaling`."""
        return self.rescaling.exact(accumulators)


def lower_filter(node: Node, operands: Operands, channel_axis: int) -> FilterParams:
    """Decide M, N and the stored bias.

    Args:
        node: Filter; with the attribute numerics "nntool" int32 wraps, M, N (the bias that costs bits of M, too) and
            padding follow `inside_scale` and `inside_zero_point` if these are given, and the folded zero point
            `outside_scale` and so on.
        operands: input, weights and bias in GAP9's types, and the output.
        channel_axis: Axis of the weights' output channels.

    Raises:
        UnsupportedError: a bias or accumulator that does not fit int32, or a ratio of scales without M and N.
    """
    x, weights, output = operands.input(0).affine, operands.input(1).affine, operands.output()
    codes = np.moveaxis(operands.constant(1), channel_axis, 0).astype(np.int64) - weights.zero_point[0]
    bias = operands.constant(2).astype(np.int64)
    scale = np.asarray(operands.input(2).affine.scale)
    offset = _folded_zero_points(codes, int(x.zero_point[0]), taken_for(node, output.affine), scale)
    stored = bias + offset
    _refuse_overflow(stored, "the bias with its folded zero points", "use wider weights or a narrower output range")
    as_nntool = node.attributes.text("numerics", "exact") == "nntool"
    ratio = np.asarray(scale / output.affine.scale, np.float64)
    pad_value, seen = int(x.zero_point[0]), bias
    if as_nntool and "inside_scale" in node.attributes:
        wider = node.attributes.real("inside_scale") / float(x.scale[0])
        ratio, seen = ratio * wider, round_half_up(bias / wider).astype(np.int64)
        pad_value = node.attributes.integer("inside_zero_point")
    multipliers = mul_bias(ratio, multiplier_bits(codes[0].size, seen))
    prenorm = int(min(multipliers.shift.min(), LARGEST_PRE_NORMALIZATION)) if is_wide(operands.input(0)) else 0
    lower, upper = accumulator_range(codes, x.minimum_code, x.maximum_code)
    if not as_nntool:
        _refuse_overflow(lower + stored, "the smallest accumulator", _NARROWER)
        _refuse_overflow(upper + stored, "the largest accumulator", _NARROWER)
    largest = np.maximum(np.abs(lower + stored), np.abs(upper + stored))
    overflowing = np.flatnonzero((largest >> prenorm) * multipliers.multiplier > INT32_MAX)
    rescaling = Rescaling.create(stored, multipliers, prenorm, output.affine, as_nntool and overflowing.size > 0)
    return FilterParams(
        codes,
        int(weights.zero_point[0]),
        weights.bits,
        int(x.zero_point[0]),
        pad_value,
        bias,
        offset,
        rescaling,
        tuple(int(c) for c in overflowing),
        output.dtype.storage,
        rescaling.fit_map(lower, upper),
    )


def is_wide(tensor: Tensor) -> bool:
    """Whether a tensor has 16-bit features, for which the accumulator is shifted before it is multiplied."""
    return tensor.affine.bits == 16


def _folded_zero_points(codes: Integers, input_zero_point: int, output: Affine, scale: Reals) -> Integers:
    """O_c = -Z_x * sum(w) + (Z_y != 0 ? floor(Z_y * (S_y / (S_x * S_w)) + 0.5) : 0).

    The quotient is computed first, in float64 whatever precision the scales have: MLPerf's ResNet has the bias 104245
    there, and 104246 if a float32 product is computed first.

    Args:
        codes: w - Z_w, int64[O, ...].
        input_zero_point: Z_x.
        output: S_y and Z_y.
        scale: S_x * S_w, [O].

    Raises:
        UnsupportedError: the second term does not fit int32.
    """
    offset = -input_zero_point * codes.reshape(codes.shape[0], -1).sum(axis=1)
    zero_point = int(output.zero_point[0])
    if zero_point == 0:
        return np.asarray(offset, np.int64)
    folded = round_half_up(zero_point * (output.scale.astype(np.float64) / scale.astype(np.float64)))
    _refuse_overflow(folded, "the output's zero point in units of the accumulator", "use wider weights")
    return np.asarray(offset + folded.astype(np.int64), np.int64)


def _refuse_overflow(values: Integers | Reals, what: str, way_out: str) -> None:
    bad = (values < INT32_MIN) | (values > INT32_MAX)
    if np.any(bad):
        channel = int(np.argmax(bad))
        raise UnsupportedError(
            f"channel {channel}: {what} is {float(values[channel]):.0f}, int32 ends at {INT32_MAX}; {way_out}"
        )


KERNELS = linear_kernels(
    lower_filter,
    "y = clip(norm(norm(acc + stored bias, pre) * M, N))",
    "docs/rules/gap9/quantization.md, docs/rules/gap9/filters.md",
)

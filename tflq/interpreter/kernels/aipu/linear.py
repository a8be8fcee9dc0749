"""Layers of weights and biases: y = clamp(RNE((acc + bias) * M * 2^-N) - zp_y).

Source: docs/rules/aipu/values.md#linear-layers.

acc = sum x * w with stored values, padding holding -zp_x; the bias contains zp_x * sum(w) already, as Compass stores
it. r = s_y / (s_x * s_w); several M of one layer share one N.

ConvTranspose: each input pixel adds its products to the window of outputs that it reaches. The stored bias contains
zp_x * sum(w) as if every tap met a pixel; with x + zp_x in the sums it is taken off again, which is the same as
inserted zeros and a border of -zp_x. BatchNorm: one weight and bias a channel, products and sums rounded to float32.

Source: Compass Optimizer, ops/conv.py, fc.py, deconv.py, bn.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tflq.arrays import Integers, Singles
from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands, Tensor
from tflq.interpreter.accumulate import (
    MatrixProduct,
    accumulate_product,
    accumulator_range,
    prepare_convolution,
    prepare_product,
)
from tflq.interpreter.accumulate.products import FLOAT32_EXACT
from tflq.interpreter.accumulate.transposed import (
    Transposed,
    TransposedWindow,
    accumulate_transposed,
    prepare_transposed,
)
from tflq.interpreter.kernels.aipu.activation import Fused, lower_fused
from tflq.interpreter.kernels.aipu.float_sums import float_transposed, sums_of, sums_of_weights
from tflq.interpreter.kernels.aipu.imported import imported_multiplier, imported_numbers, multiplier_bits
from tflq.interpreter.kernels.aipu.multiplier import (
    Multiplier,
    OutputCodes,
    codes_of,
    find_multipliers,
    scaled,
    unify_shifts,
)
from tflq.interpreter.kernels.aipu.pooling import window_of
from tflq.interpreter.kernels.aipu.scales import constant_named, is_wide, magnitude_of, offset_of, reciprocal, scale_of
from tflq.interpreter.layers.linear import (
    ConvolutionLayer,
    Linear,
    Scheme,
    linear_product,
    run_convolution,
    samples_last,
)
from tflq.interpreter.numerics.fixed_point import INT32_MAX, INT32_MIN
from tflq.interpreter.numerics.requantize import SMALLEST_SCALE, StepMaps, fit_step_map
from tflq.interpreter.numerics.thresholds import LARGEST_SHIFT
from tflq.interpreter.operands.sliding_windows import Window
from tflq.interpreter.registry import Kernel

Number = TypeVar("Number", np.int64, np.float32)

REMAIN_SHIFT = "remain_shift"
"""Key of layers whose sums give up bits before the bias, for hardware that takes 32 of them."""


@dataclass(frozen=True, eq=False)
class FilterParams(Scheme):
    """The params of a linear layer, except its window.

    Attributes:
        weights: int64[O, ...].
        bias: int64[O], zp_x folded in.
        rescale: M and N, one for each output channel or one for all.
        fused: the activation on the accumulator.
        pad: Value outside the image, -zp_x.
        codes: Quantized values of the output.
        dtype: storage of the output.
        remain_shift: Bits of N that remain after the bias, if sums have more than 32 bits; None if all remain.
        step_map: proven map from accumulators to quantized values; None if the rule itself runs.
    """

    weights: Integers
    bias: Integers
    rescale: Multiplier
    fused: Fused
    pad: int
    codes: OutputCodes
    dtype: np.dtype[np.generic]
    remain_shift: int | None = None
    step_map: StepMaps | None = None

    @property
    def pad_value(self) -> int:
        """-zp_x, the code of 0."""
        return self.pad

    def exact(self, accumulators: Integers) -> Integers:
        """The rule itself: accumulators without bias, int64[..., O] -> quantized values int64[..., O]."""
        total, rescale = self._shift_early(accumulators)
        return self.codes.clamp(self.fused.apply(total, rescale))

    def reach(self, codes: Integers) -> Integers:
        """Return the smallest accumulators with quantized values of at least `codes`, provided no bits are dropped."""
        return self.fused.reach(codes + self.codes.offset, self.rescale) - self.bias

    def _shift_early(self, accumulators: Integers) -> tuple[Integers, Multiplier]:
        """Return sums with bias, and the remaining M and N.

        With remain_shift r: d = max(N - r, 0); clamp32(RNE(acc * 2^-d)) + clamp32(bias >> d), N := N - d. Source:
        Compass Optimizer, utils/quant_tool_utils.py, aiff_ahead_shift_bias.
        """
        if self.remain_shift is None:
            return accumulators + self.bias, self.rescale
        early = max(int(self.rescale.n[0]) - self.remain_shift, 0)
        sums = np.clip(scaled(accumulators, 1, early), INT32_MIN, INT32_MAX).astype(np.int64)
        bias = np.clip(self.bias >> early, INT32_MIN, INT32_MAX) if early else self.bias
        return sums + bias, Multiplier(self.rescale.m, self.rescale.n - early)


@dataclass(frozen=True, eq=False)
class ProductParams:
    """The params of a fully connected layer: weights [O, K] and rule, the packed weights, the output's shape."""

    filter: FilterParams
    prepared: MatrixProduct
    shape: tuple[int, ...]

    @property
    def linear(self) -> Linear | None:
        """The layer as `Linear`; None if no map serves it."""
        maps = self.filter.step_map
        return None if maps is None else linear_product(self.filter.weights, maps)


@dataclass(frozen=True, eq=False)
class ConvTransposeParams:
    """The params of a transposed convolution.

    Attributes:
        filter: weights [O, KH, KW, C] and rule.
        prepared: the packed weights, and the window.
        input_offset: zp_x.
        folded: zp_x * sum(w), int64[O]; with a library its own sum.
        library: Library that computes the float32 sums; "" if they are exact.
    """

    filter: FilterParams
    prepared: Transposed
    input_offset: int
    folded: Integers
    library: str = ""


@dataclass(frozen=True, eq=False)
class BatchNormParams:
    """The params of a batch normalization.

    Attributes:
        filter: weights [C] and rule, the channel last.
        rounds: whether a product or sum may leave 2^24: the Optimizer computes both in float32.
    """

    filter: FilterParams
    rounds: bool = False


def lower_filter(node: Node, operands: Operands) -> FilterParams:
    """Decide M and N for r = s_y / (s_x * s_w), in float32.

    Args:
        node: Layer with the attribute with_activation.
        operands: input, constants weights and biases, output.

    Raises:
        UnsupportedError: another fused activation; no constant weights; a ratio of scales without multiplier.
    """
    x, output = operands.input(0), operands.output()
    fused = lower_fused(node, operands)
    weights, biases = constant_named(operands, "weights"), constant_named(operands, "biases")
    if weights is None or biases is None:
        raise UnsupportedError("weights or biases are not constant; a linear layer needs both as constants")
    values, bias = (np.asarray(t.data, np.int64) for t in (weights, biases))
    rescale, codes = _rescale(node, x, weights, output), codes_of(output)
    # Sums of 8-bit products fit 32 bits: the hardware keeps them whole.
    shift = requested_shift(node) if is_wide(weights) or is_wide(x) else None
    params = FilterParams(values, bias, rescale, fused, -offset_of(x), codes, codes.dtype, shift)
    if shift is not None or not fused.is_monotone_line:
        return params
    lower, upper = accumulator_range(values, x.dtype.minimum, x.dtype.maximum)
    slope = np.broadcast_to(rescale.m * np.exp2(-rescale.n.astype(np.float64)), bias.shape)
    start = bias - codes.offset / np.maximum(slope, SMALLEST_SCALE)
    limits = (-codes.offset, codes.minimum, codes.maximum)
    in_form = np.all((rescale.n >= 0) & (rescale.n <= LARGEST_SHIFT)) and np.all(upper + bias < FLOAT32_EXACT)
    reach = params.reach if in_form else None
    return replace(params, step_map=fit_step_map(params.exact, slope, start, lower, upper, *limits, reach))


def filter_ratios(x: Tensor, weights: Tensor, output: Tensor) -> Singles:
    """Return r = s_y / (s_x * s_w), float32[1] or [O]."""
    product = (scale_of(x) * reciprocal(weights.affine)).astype(np.float32)
    ratios: Singles = (scale_of(output) / product).astype(np.float32)
    return ratios


def requested_shift(node: Node) -> int | None:
    """Return the remain_shift that the settings request or a quantized file has."""
    given = imported_numbers(node, REMAIN_SHIFT)
    if given is not None:
        return int(given[0])
    return node.attributes.integer(REMAIN_SHIFT) if node.attributes.get(REMAIN_SHIFT) is not None else None


def _rescale(node: Node, x: Tensor, weights: Tensor, output: Tensor) -> Multiplier:
    """Return M and N: one for all channels, or one each with one shift for all."""
    given = imported_multiplier(node)
    multipliers = given or find_multipliers(filter_ratios(x, weights, output), multiplier_bits(node, output))
    if multipliers.m.size == 1 and not weights.affine.is_per_axis:
        return multipliers
    return given or unify_shifts(multipliers)


def lower_convolution(node: Node, operands: Operands) -> ConvolutionLayer:
    """Decide the params of Convolution, or of DepthwiseConv, which has as many groups as channels.

    Raises:
        UnsupportedError: as `lower_filter`; weights that do not fit the groups.
        GraphError: shapes that contradict each other.
    """
    x, params = operands.input(0), lower_filter(node, operands)
    depth, channels = params.weights.shape[3], x.shape[3]
    groups = channels if node.operator == "depthwise_conv" else node.attributes.integer("group", 1)
    if node.operator == "convolution" and depth * groups != channels:
        raise UnsupportedError(f"group={groups}: weights of {depth} channels do not fit an input of {channels}")
    window = window_of(node, x, operands.output())
    width = window.output_size((x.shape[1], x.shape[2]))[1]
    prepared = prepare_convolution(params.weights, window, groups, magnitude_of(x), width)
    return ConvolutionLayer(params, groups, prepared)


def lower_fully_connected(node: Node, operands: Operands) -> ProductParams:
    """Decide the params of FullyConnected; raises as `lower_filter`."""
    params = lower_filter(node, operands)
    prepared = prepare_product(params.weights, magnitude_of(operands.input(0)))
    return ProductParams(params, prepared, operands.output().shape)


def run_fully_connected(params: ProductParams, x: Array, *_constants: Array) -> tuple[Array, ...]:
    """Run FullyConnected: quantized values [S, B, ...] flattened to [S, B, K] -> [S, B, O]."""
    rows = x.reshape(x.shape[0], -1, params.filter.weights.shape[1])
    y = params.filter.finish(accumulate_product(params.prepared, rows))
    return (y.reshape(x.shape[0], *params.shape),)


def lower_conv_transpose(node: Node, operands: Operands) -> ConvTransposeParams:
    """Decide the params of ConvTranspose.

    Raises:
        UnsupportedError: as `lower_filter`; groups.
        GraphError: shapes that contradict each other.
    """
    x, output = operands.input(0), operands.output()
    params = lower_filter(node, operands)
    weights, place = dilate_transposed(node, params.weights, output)
    zp = offset_of(x)
    prepared = prepare_transposed(weights, place, magnitude_of(x) + 2 * abs(zp))
    library = sums_of(node)
    exact: Integers = zp * weights.reshape(weights.shape[0], -1).sum(axis=1)
    folded = sums_of_weights(zp, params.weights).astype(np.int64) if library else exact
    return ConvTransposeParams(params, prepared, zp, folded, library)


def run_conv_transpose(params: ConvTransposeParams, x: Array, *_constants: Array) -> tuple[Array, ...]:
    """Run ConvTranspose: quantized values [S, N, H, W, C] -> [S, N, OH, OW, O]."""
    real, rule = x.astype(np.int64) + params.input_offset, params.filter
    if params.library:
        is_apart = rule.remain_shift is not None
        bias = (0 if is_apart else rule.bias) - params.folded
        total = float_transposed(params.prepared, real, bias, params.library).astype(np.int64)
        return (rule.exact(total if is_apart else total - rule.bias).astype(rule.dtype),)
    accumulators = accumulate_transposed(params.prepared, real)
    return (rule.finish(accumulators - params.folded.astype(accumulators.dtype)),)


def dilate_transposed(node: Node, weights: NDArray[Number], output: Tensor) -> tuple[NDArray[Number], TransposedWindow]:
    """Return weights with zeros between the taps, as dilation has them, and the window of a ConvTranspose.

    Raises:
        UnsupportedError: groups.
    """
    value = node.attributes.integer
    if value("group", 1) != 1:
        raise UnsupportedError(f"group={value('group')}; allowed is 1")
    spread = _spread(weights, (value("dilation_y", 1), value("dilation_x", 1)))
    stride = (value("stride_y"), value("stride_x"))
    kernel = (spread.shape[1], spread.shape[2])
    sides = (value(f"pad_{side}", 0) for side in ("top", "bottom", "left", "right"))
    return spread, TransposedWindow(Window(kernel, stride, (1, 1), *sides), (output.shape[1], output.shape[2]))


def _spread(weights: NDArray[Number], dilation: tuple[int, int]) -> NDArray[Number]:
    """Return weights with zeros between the taps."""
    o, h, w, c = weights.shape
    spread = np.zeros((o, (h - 1) * dilation[0] + 1, (w - 1) * dilation[1] + 1, c), weights.dtype)
    spread[:, :: dilation[0], :: dilation[1]] = weights
    return spread


def lower_batch_norm(node: Node, operands: Operands) -> BatchNormParams:
    """Decide the params of BatchNorm.

    Raises:
        UnsupportedError: another axis than the last.
    """
    rank = len(operands.input(0).shape)
    axis = node.attributes.integer("axis")
    if axis % rank != rank - 1:
        raise UnsupportedError(f"axis={axis}; allowed is the last, {rank - 1}")
    params, x = lower_filter(node, operands), operands.input(0)
    largest = magnitude_of(x) * int(np.abs(params.weights).max(initial=0)) + int(np.abs(params.bias).max(initial=0))
    return BatchNormParams(params, largest > FLOAT32_EXACT)


def run_batch_norm(params: BatchNormParams, x: Array, *_constants: Array) -> tuple[Array, ...]:
    """Run BatchNorm: quantized values [S, ..., C] -> [S, ..., C]."""
    rule = params.filter
    if not params.rounds:
        return (rule.finish(x.astype(np.int64) * rule.weights),)
    product = (x.astype(np.float32) * rule.weights.astype(np.float32)).astype(np.float32)
    total = (product + rule.bias.astype(np.float32)).astype(np.float32).astype(np.int64)
    return (rule.exact(total - rule.bias).astype(rule.dtype),)


_RULE = "clamp(RNE((acc + bias) * M * 2^-N) - zp_y)"
_SOURCE = "Compass Optimizer, ops/conv.py, fc.py, deconv.py, bn.py; docs/rules/aipu/values.md#linear-layers"

KERNELS = {
    **dict.fromkeys(
        ("convolution", "depthwise_conv"),
        Kernel(lower_convolution, run_convolution, _RULE, _SOURCE, samples_last=samples_last),
    ),
    "batch_norm": Kernel(lower_batch_norm, run_batch_norm, _RULE, _SOURCE),
    "conv_transpose": Kernel(lower_conv_transpose, run_conv_transpose, _RULE, _SOURCE),
    "fully_connected": Kernel(lower_fully_connected, run_fully_connected, _RULE, _SOURCE),
}

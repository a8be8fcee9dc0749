"""Integer arithmetic shared by CONV_2D and DEPTHWISE_CONV_2D of TFLite (docs/rules/tflite/index.md).

The accumulator is that of weighted.py. A depthwise convolution is a grouped one with one input channel in each group.

Source: TFLite kernels/internal/reference/integer_ops/conv.h and depthwise_conv.h, reference/conv.h and
depthwiseconv_uint8.h, kernels/kernel_util.cc (PopulateConvolutionQuantizationParams).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Node, Operands, Tensor
from tflq.interpreter.accumulate import Convolution, accumulate_in_order, gain_in_order, prepare_convolution
from tflq.interpreter.kernels.tflite.rescale import Rounding, effective_scale, make_rule, require_bias_scale
from tflq.interpreter.kernels.tflite.weighted import LayerConstants, WeightedLayer, make_constants, with_constants
from tflq.interpreter.layers.linear import Linear
from tflq.interpreter.operands.checks import EIGHT_BITS, per_tensor, require_same_type, require_symmetric, require_type
from tflq.interpreter.operands.sliding_windows import Window, require_convolved, window_of
from tflq.interpreter.operands.windows import groups_of

SIGNED_WEIGHTS = (DType.INT8, DType.INT4)


@dataclass(frozen=True, eq=False)
class QuantizedConvolution(WeightedLayer[Convolution]):
    """The params of one convolution.

    Attributes:
        window: kernel, stride, dilation, padding.
        output_width: columns of the output.
        groups: number of groups.
        input_dtype: Type of the input.
    """

    window: Window
    output_width: int
    groups: int
    input_dtype: DType

    @property
    def linear(self) -> Linear | None:
        """The layer as `Linear`; None if weights are computed at run time, or no map serves it."""
        constants = self.constants
        if constants is None or constants.rescale.step_map is None:
            return None
        return Linear(constants.weights, self.window, self.groups, self.input_zero_point, constants.rescale.step_map)

    def make(self, weights: Array, bias: Array | None, fit: bool) -> LayerConstants[Convolution]:
        """Return the constants of weights [O, KH, KW, C/groups] and a bias, as `make_constants`."""

        def pack(shifted: Array, magnitude: int) -> Convolution:
            return prepare_convolution(shifted, self.window, self.groups, magnitude, self.output_width)

        dtype, zero_points = self.input_dtype, (self.input_zero_point, self.weights_zero_point)
        return make_constants(self.rule, (dtype.minimum, dtype.maximum), zero_points, weights, bias, pack, fit)

    def compute(self, constants: LayerConstants[Convolution], x: Array) -> Array:
        """Return the quantized values of x."""
        return constants.rescale.apply(accumulate_in_order(constants.prepared, x, self.input_zero_point))


def lower_convolution(
    node: Node,
    operands: Operands,
    channels_last: bool,
    allow_int32_bias_for_int16: bool,
    rounding_of_8_bits: Rounding = Rounding.DOUBLE,
) -> QuantizedConvolution:
    """Decide the params.

    Args:
        node: Layer with padding, strides, dilations and the fused activation.
        operands: input [N, H, W, C], weights, optional bias [O], and the output.
        channels_last: weights are depthwise [1, KH, KW, O]; else [O, KH, KW, C/groups].
        allow_int32_bias_for_int16: whether the operator has a path with int32 accumulators for int16.
        rounding_of_8_bits: Last step of int8 and uint8, a property of the runtime (docs/guides/runtimes.md).

    Raises:
        UnsupportedError: types or quantization that TFLite's kernel does not take.
        GraphError: shapes that contradict each other.
    """
    x, weights, bias, output = operands.input(0), operands.input(1), operands.optional(2), operands.output()
    dtype = require_type(x, (*EIGHT_BITS, DType.INT16))
    require_same_type(x, output)
    require_type(weights, (DType.UINT8,) if dtype is DType.UINT8 else SIGNED_WEIGHTS)
    if dtype is DType.INT16:
        require_symmetric(x, output)
    groups, outputs = groups_of(x, weights, channels_last)
    _, zi = per_tensor(x)
    zw = per_tensor(weights)[1] if dtype is DType.UINT8 else 0
    if not channels_last and dtype is not DType.UINT8 and np.any(weights.affine.zero_point):
        raise UnsupportedError(
            f"weights '{weights.name}' have a zero point other than 0; for {dtype.value} it must be 0"
        )
    rounding, bits = _accumulator_of(node, dtype, bias, allow_int32_bias_for_int16)
    if dtype in EIGHT_BITS:
        rounding = _choose_rounding(rounding_of_8_bits, groups if not channels_last else 1, dtype)
    if dtype is DType.UINT8 and bias is not None:
        require_bias_scale(x, weights, bias, output)
    scale = effective_scale(x, weights, output, outputs, rounding, product_in_float32=dtype is DType.UINT8)
    rule = make_rule(node, output, scale, rounding, bits)
    window = window_of(node.attributes, (x.shape[1], x.shape[2]), (weights.shape[1], weights.shape[2]))
    require_convolved(window, x.shape, outputs)
    width = window.output_size((x.shape[1], x.shape[2]))[1]
    layer = QuantizedConvolution(zi, zw, rule, None, window, width, groups, dtype)
    return with_constants(layer, None if weights.data is None else as_grouped(weights.data, channels_last), bias)


def run_convolution(layer: QuantizedConvolution, x: Array, weights: Array, bias: Array | None) -> tuple[Array, ...]:
    """Run a convolution.

    Args:
        layer: Result of `lower_convolution`.
        x: T[S, N, H, W, C].
        weights: integers [S or 1, O, KH, KW, C/groups]; used if `layer.constants` is None.
        bias: [S or 1, O] or None; likewise.

    Returns:
        T[S, N, OH, OW, O].
    """
    return (layer.run(x, weights, bias),)


def gain_of_samples_last(layer: QuantizedConvolution, operands: Operands) -> float | None:
    """Return the gain of images with samples last, as `gain_in_order`; None if weights are computed at run time."""
    if layer.constants is None:
        return None
    _, height, width, _ = operands.input(0).shape
    return gain_in_order(layer.constants.prepared, layer.constants.rescale.step_map is not None, (height, width))


def as_grouped(weights: Array, channels_last: bool) -> Array:
    """Bring depthwise weights [..., 1, KH, KW, O] to [..., O, KH, KW, 1]; others stay."""
    return np.swapaxes(weights, -4, -1) if channels_last else weights


def _choose_rounding(rounding: Rounding, groups: int, dtype: DType) -> Rounding:
    """Return the last step of 8 bits; LiteRT's optimized kernels run grouped and uint8 depthwise layers as DOUBLE."""
    is_scalar = (rounding is Rounding.UP and groups > 1) or (rounding is Rounding.UP_BY_EIGHT and dtype is DType.UINT8)
    return Rounding.DOUBLE if is_scalar else rounding


def _accumulator_of(
    node: Node, dtype: DType, bias: Tensor | None, allow_int32_bias_for_int16: bool
) -> tuple[Rounding, int]:
    if dtype in EIGHT_BITS:
        if bias is not None:
            require_type(bias, (DType.INT32,))
        return Rounding.DOUBLE, 32
    stated = node.attributes.text("quantized_bias_type", "float32") if allow_int32_bias_for_int16 else "float32"
    if bias is not None:
        require_type(bias, (DType.INT32,) if stated == "int32" else (DType.INT64,))
    return (Rounding.DOUBLE, 32) if stated == "int32" else (Rounding.SINGLE_64, 64)

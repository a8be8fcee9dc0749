"""What CONV_2D and DEPTHWISE_CONV_2D share in TFLite's integer arithmetic (docs/tflite.md).

acc = sum over taps of (w - zw) * x with raw codes x, padding holding zi; total = acc + bias - zi * sum(w - zw). That is
the reference kernel's bias plus the sum over taps inside the image of (w - zw) * (x - zi). A depthwise convolution is a
grouped one with one input channel in each group.

Source: TFLite kernels/internal/reference/integer_ops/conv.h and depthwise_conv.h, reference/conv.h and
depthwiseconv_uint8.h, kernels/kernel_util.cc (PopulateConvolutionQuantizationParams).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands, Tensor
from tflq.interpreter.accumulate import (
    Convolution,
    Window,
    accumulate_in_order,
    accumulator_range,
    gain_in_order,
    prepare_convolution,
    window_of,
)
from tflq.interpreter.accumulate.window import require_convolved
from tflq.interpreter.kernels.tflite.bias_scale import require_bias_scale
from tflq.interpreter.kernels.tflite.rescale import Rescale, Rounding, Rule, make_rescale, make_rule
from tflq.interpreter.numerics.fixed_point import Integers
from tflq.interpreter.operands.checks import EIGHT_BITS, per_tensor, require_same_type, require_type
from tflq.interpreter.operands.checks import require_zero_points_of_zero as require_symmetric

SIGNED_WEIGHTS = (DType.INT8, DType.INT4)


@dataclass(frozen=True, eq=False)
class LayerConstants:
    """What follows from weights and bias.

    Attributes:
        weights: integers [O, KH, KW, C/groups], their zero point taken off.
        bias: int64[O] as in the file, zeros where there is none.
        rescale: rule, folded bias, proven map.
        prepared: the weights made ready for accumulation.
    """

    weights: Array
    bias: Integers
    rescale: Rescale
    prepared: Convolution


@dataclass(frozen=True, eq=False)
class QuantisedConvolution:
    """The integers of one convolution.

    Attributes:
        window: kernel, stride, dilation, padding.
        output_width: columns of the output.
        groups: number of groups.
        input_dtype: of the input.
        input_zero_point: zi, also the padding value.
        weights_zero_point: zw; 0 but for uint8.
        rule: how totals become codes.
        constants: None where weights or bias are computed at run time.
    """

    window: Window
    output_width: int
    groups: int
    input_dtype: DType
    input_zero_point: int
    weights_zero_point: int
    rule: Rule
    constants: LayerConstants | None


def lower_convolution(
    node: Node, operands: Operands, channels_last: bool, allow_int32_bias_for_int16: bool
) -> QuantisedConvolution:
    """Decide the integers.

    Args:
        node: with padding, strides, dilations and the fused activation.
        operands: input [N, H, W, C], weights, optional bias [O], and the output.
        channels_last: weights are depthwise [1, KH, KW, O]; else [O, KH, KW, C/groups].
        allow_int32_bias_for_int16: whether the operator has a path with int32 accumulators for int16.

    Raises:
        UnsupportedError: types or quantisation that TFLite's kernel does not take.
        GraphError: shapes that contradict each other.
    """
    x, weights, bias, output = operands.input(0), operands.input(1), operands.optional(2), operands.output()
    dtype = require_type(x, (*EIGHT_BITS, DType.INT16))
    require_same_type(x, output)
    require_type(weights, (DType.UINT8,) if dtype is DType.UINT8 else SIGNED_WEIGHTS)
    if dtype is DType.INT16:
        require_symmetric(x, output)
    groups, kernel, outputs = _shape_of(x, weights, channels_last)
    _, zi = per_tensor(x)
    zw = per_tensor(weights)[1] if dtype is DType.UINT8 else 0
    if not channels_last and dtype is not DType.UINT8 and np.any(weights.affine.zero_point):
        raise UnsupportedError(
            f"weights '{weights.name}' have a zero point other than 0; for {dtype.value} it must be 0"
        )
    rounding, bits = _accumulator_of(node, dtype, bias, allow_int32_bias_for_int16)
    if dtype is DType.UINT8 and bias is not None:
        require_bias_scale(x, weights, bias, output)
    rule = make_rule(node, output, effective_scale(x, weights, output, outputs), rounding, bits)
    window = window_of(node.attributes, (x.shape[1], x.shape[2]), kernel)
    require_convolved(window, x.shape, outputs)
    width = window.output_size((x.shape[1], x.shape[2]))[1]
    layer = QuantisedConvolution(window, width, groups, dtype, zi, zw, rule, None)
    if weights.data is None or (bias is not None and bias.data is None):
        return layer
    made = make_constants(layer, as_grouped(weights.data, channels_last), None if bias is None else bias.data, True)
    return replace(layer, constants=made)


def run_convolution(layer: QuantisedConvolution, x: Array, weights: Array, bias: Array | None) -> tuple[Array, ...]:
    """Run a convolution.

    Args:
        layer: of `lower_convolution`.
        x: T[S, N, H, W, C].
        weights: integers [S or 1, O, KH, KW, C/groups]; used where `layer.constants` is None.
        bias: [S or 1, O] or None; likewise.

    Returns:
        T[S, N, OH, OW, O].
    """
    if layer.constants is not None:
        return (_convolve(layer, layer.constants, x),)
    own = max(x.shape[0], weights.shape[0], 1 if bias is None else bias.shape[0])
    samples = []
    for s in range(own):
        made = make_constants(layer, weights[s % len(weights)], None if bias is None else bias[s % len(bias)], False)
        samples.append(_convolve(layer, made, x[s % len(x)][None]))
    return (np.concatenate(samples),)


def gain_of_samples_last(layer: QuantisedConvolution, operands: Operands) -> float | None:
    """Return what images with samples last gain, as `gain_in_order`; None where weights are computed at run time."""
    if layer.constants is None:
        return None
    _, height, width, _ = operands.input(0).shape
    return gain_in_order(layer.constants.prepared, layer.constants.rescale.step_map is not None, (height, width))


def make_constants(layer: QuantisedConvolution, weights: Array, bias: Array | None, fit: bool) -> LayerConstants:
    """Take zero points off, fold them into the bias, and prepare.

    Args:
        layer: the layer without constants.
        weights: codes [O, KH, KW, C/groups].
        bias: [O] or None.
        fit: whether to look for a proven map; pays where the constants serve many samples.
    """
    shifted = weights if layer.weights_zero_point == 0 else weights.astype(np.int16) - layer.weights_zero_point
    outputs = weights.shape[0]
    plain = np.zeros(outputs, np.int64) if bias is None else bias.astype(np.int64).reshape(-1)
    if plain.shape[0] != outputs:
        raise GraphError(f"the bias has {plain.shape[0]} elements, the weights have {outputs} output channels")
    folded = plain - layer.input_zero_point * shifted.astype(np.int64).reshape(outputs, -1).sum(axis=1)
    low, high = layer.input_dtype.minimum, layer.input_dtype.maximum
    rescale = (
        make_rescale(layer.rule, folded, *accumulator_range(shifted, low, high))
        if fit
        else Rescale(layer.rule, folded, None)
    )
    prepared = prepare_convolution(shifted, layer.window, layer.groups, max(-low, high), layer.output_width)
    return LayerConstants(shifted, plain, rescale, prepared)


def effective_scale(x: Tensor, weights: Tensor, output: Tensor, outputs: int) -> NDArray[np.float64]:
    """Return si * sw / so for each output channel: all float64, but for uint8 si * sw is a float32 product."""
    si, so = per_tensor(x)[0], per_tensor(output)[0]
    sw = weights.affine.scale.astype(np.float32)
    if sw.size not in (1, outputs):
        raise GraphError(f"weights '{weights.name}' have {sw.size} scales; allowed are 1 or {outputs}")
    product = (si * sw).astype(np.float64) if x.dtype is DType.UINT8 else np.float64(si) * sw.astype(np.float64)
    scale: NDArray[np.float64] = product / np.float64(so)
    return np.array(np.broadcast_to(scale, (outputs,)))


def as_grouped(weights: Array, channels_last: bool) -> Array:
    """Bring depthwise weights [..., 1, KH, KW, O] to [..., O, KH, KW, 1]; others stay."""
    return np.swapaxes(weights, -4, -1) if channels_last else weights


def _shape_of(x: Tensor, weights: Tensor, channels_last: bool) -> tuple[int, tuple[int, int], int]:
    if len(x.shape) != 4 or len(weights.shape) != 4:
        raise GraphError(f"input {x.shape} and weights {weights.shape} must both have 4 axes")
    channels, kernel = x.shape[3], (weights.shape[1], weights.shape[2])
    outputs, depth = (weights.shape[3], 1) if channels_last else (weights.shape[0], weights.shape[3])
    if channels_last and (weights.shape[0] != 1 or channels < 1 or outputs % channels):
        raise GraphError(f"depthwise weights {weights.shape} do not fit {channels} input channels")
    if depth < 1 or channels % depth or outputs % max(channels // depth, 1):
        raise GraphError(f"weights {weights.shape} do not fit {channels} input channels")
    return channels // depth, kernel, outputs


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


def _convolve(layer: QuantisedConvolution, made: LayerConstants, x: Array) -> Array:
    return made.rescale.apply(accumulate_in_order(made.prepared, x, layer.input_zero_point))

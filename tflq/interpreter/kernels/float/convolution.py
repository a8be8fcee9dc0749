"""CONV_2D and DEPTHWISE_CONV_2D of float32, groups and dilation included: ordered sums, then the bias, then the clamp.

y = clamp(f32(total + bias)), total as in accumulate/sequential.py. A depthwise convolution is a grouped one with one
input channel in each group: output channel c * multiplier + m reads input channel c; the multiplier follows from the
shapes. Equal to TFLite bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from tflq.arrays import Singles
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.accumulate import sequential_convolution
from tflq.interpreter.kernels.plain.binary import clamp_sums_in_place
from tflq.interpreter.numerics.fixed_point import activation_bounds
from tflq.interpreter.operands.checks import require_bias_size, require_type
from tflq.interpreter.operands.sliding_windows import Window, require_convolved
from tflq.interpreter.operands.windows import groups_of, require_strides, window_of_node
from tflq.interpreter.registry import Kernel

LARGEST = np.finfo(np.float32).max


@dataclass(frozen=True)
class Clamped:
    """A layer of float32 that ends in a clamp.

    Attributes:
        minimum: lower bound of the fused activation; without one the smallest finite number.
        maximum: upper bound.
    """

    minimum: np.float32
    maximum: np.float32


@dataclass(frozen=True)
class FloatConvolution(Clamped):
    """The params of a convolution of float32.

    Attributes:
        window: kernel, stride, dilation, padding.
        groups: number of groups.
    """

    window: Window
    groups: int


def lower_convolution(node: Node, operands: Operands, channels_last: bool) -> FloatConvolution:
    """Check the operands and decide the window.

    Args:
        node: Layer with padding, strides, dilations and the fused activation.
        operands: input [N, H, W, C], weights, optional bias, output.
        channels_last: weights are depthwise [1, KH, KW, O]; else [O, KH, KW, C/groups].

    Raises:
        UnsupportedError: a type other than float32.
        GraphError: shapes that contradict each other.
    """
    x, weights = operands.input(0), operands.input(1)
    for tensor in (*operands.inputs, operands.output()):
        if tensor is not None:
            require_type(tensor, (DType.FLOAT32,))
    groups, outputs = groups_of(x, weights, channels_last)
    window = window_of_node(node, x.shape, weights.shape)
    require_bias_size(operands.optional(2), outputs)
    require_convolved(window, x.shape, outputs)
    return FloatConvolution(*float_bounds(node), window, groups)


def run_convolution(
    layer: FloatConvolution, x: Singles, weights: Singles, bias: Singles | None = None
) -> tuple[Array, ...]:
    """Run it: x [S, N, H, W, C], weights [S or 1, O, KH, KW, C/groups], bias [S or 1, O] -> [S, N, OH, OW, O]."""
    own = max(x.shape[0] if weights.shape[0] > 1 else 1, weights.shape[0])
    with np.errstate(over="ignore", invalid="ignore"):
        if own == 1:
            total = sequential_convolution(x, weights[0], layer.window, layer.groups)
        else:
            each = [
                sequential_convolution(x[s % len(x)][None], weights[s], layer.window, layer.groups) for s in range(own)
            ]
            total = np.concatenate(each)
        return (finish(total, bias, layer.minimum, layer.maximum),)


def float_bounds(node: Node) -> tuple[np.float32, np.float32]:
    """Return the clamp of a fused activation; without one it is that of the finite numbers, as in TFLite."""
    low, high = activation_bounds(node.attributes.text("fused_activation_function", "none"))
    return np.float32(-LARGEST if low is None else low), np.float32(LARGEST if high is None else high)


def finish(total: Singles, bias: Singles | None, minimum: np.float32, maximum: np.float32) -> Array:
    """Add the bias [S or 1, O] to sums [S, ..., O] that started at +0, and clamp, in place; NaN stays."""
    if bias is not None and bias.shape[0] == 1:
        total += bias
    elif bias is not None and bias.shape[0] <= total.shape[0]:
        total += bias.reshape(bias.shape[0], *(1,) * (total.ndim - 2), -1)
    elif bias is not None:  # one bias for each sample with shared weights
        total = total + bias.reshape(bias.shape[0], *(1,) * (total.ndim - 2), -1)
    return clamp_sums_in_place(total, minimum, maximum)


def _lower_conv_2d(node: Node, operands: Operands) -> FloatConvolution:
    require_strides(node)
    return lower_convolution(node, operands, channels_last=False)


def _run_depthwise(
    params: FloatConvolution, x: Singles, weights: Singles, bias: Singles | None = None
) -> tuple[Array, ...]:
    return run_convolution(params, x, np.swapaxes(weights, -4, -1), bias)


KERNELS = {
    "conv_2d": Kernel(_lower_conv_2d, run_convolution,
        "float32: [S, N, H, W, C], weights [O, KH, KW, C/groups], bias [O] -> [S, N, OH, OW, O]",
        "TFLite kernels/conv.cc, internal/reference/conv.h"),
    "depthwise_conv_2d": Kernel(partial(lower_convolution, channels_last=True), _run_depthwise,
        "float32: [S, N, H, W, C], weights [1, KH, KW, O], bias [O] -> [S, N, OH, OW, O]",
        "TFLite kernels/depthwise_conv.cc, internal/reference/depthwiseconv_float.h"),
}  # fmt: skip

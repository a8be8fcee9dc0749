"""CONV_2D on codes (filter.py)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.accumulate import Convolution, accumulate_in_order, gain_in_order, prepare_convolution, window_of
from tflq.interpreter.kernels.openvino.filter import FilterParams, lower_filter


@dataclass(frozen=True, eq=False)
class ConvolutionParams:
    """The numbers of one convolution.

    Attributes:
        filter: weights, multipliers, bias, levels.
        groups: number of groups.
        prepared: the weights made ready for accumulation, and the window.
    """

    filter: FilterParams
    groups: int
    prepared: Convolution


def lower(node: Node, operands: Operands) -> ConvolutionParams:
    """Decide the numbers of CONV_2D; raises as `lower_convolution`."""
    return lower_convolution(node, operands, channel_axis=0)


def run(params: ConvolutionParams, x: Array, *_constants: Array) -> tuple[Array, ...]:
    """Run CONV_2D: codes [S, N, H, W, C] -> codes or float32 [S, N, OH, OW, O]."""
    found = params.filter
    return (found.finish(accumulate_in_order(params.prepared, found.shifted(x), found.pad_value)),)


def samples_last(params: ConvolutionParams, operands: Operands) -> float | None:
    """Return what images with samples last gain, as `gain_in_order`."""
    _, height, width, _ = operands.input(0).shape
    return gain_in_order(params.prepared, params.filter.step_map is not None, (height, width))


def lower_convolution(node: Node, operands: Operands, channel_axis: int) -> ConvolutionParams:
    """Decide the numbers of a convolution.

    Args:
        node: with window attributes.
        operands: input [N, H, W, C]; weights [O, KH, KW, C/groups] or depthwise [1, KH, KW, O]; optional bias [O].
        channel_axis: 0, or 3 for depthwise.

    Raises:
        UnsupportedError: as `lower_filter`.
        GraphError: shapes that contradict each other.
    """
    found = lower_filter(node, operands, channel_axis)
    x, weights = operands.input(0), operands.input(1)
    # Depthwise weights with the output channel first are [O, 1, KH, KW].
    shaped = found.weights if channel_axis == 0 else np.moveaxis(found.weights, 1, 3)
    channels, depth = x.shape[3], shaped.shape[3]
    if channels % depth:
        raise GraphError(f"weights {weights.shape} do not fit {channels} input channels")
    size = (x.shape[1], x.shape[2])
    window = window_of(node.attributes, size, (weights.shape[1], weights.shape[2]))
    magnitude = max(-x.dtype.minimum, x.dtype.maximum) * (2 if found.is_per_channel else 1)
    width = window.output_size(size)[1]
    prepared = prepare_convolution(shaped, window, channels // depth, magnitude, width)
    return ConvolutionParams(found, channels // depth, prepared)

"""CONV_2D: exact products of 8-bit codes, a 32-bit multiplier for each channel, ties up (docs/tpu_mlir.md, 4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.accumulate import Convolution, accumulate_in_order, gain_in_order, prepare_convolution, window_of
from tflq.interpreter.kernels.tpu_mlir.filter import FilterParams, input_magnitude, lower_filter


@dataclass(frozen=True, eq=False)
class ConvolutionParams:
    """The integers of one convolution.

    Attributes:
        filter: weights, bias, m and s.
        groups: number of groups.
        prepared: the weights made ready for accumulation, and the window.
    """

    filter: FilterParams
    groups: int
    prepared: Convolution


def lower(node: Node, operands: Operands) -> ConvolutionParams:
    """Decide the integers of CONV_2D.

    Raises:
        UnsupportedError: as `lower_filter`.
        GraphError: shapes that contradict each other.
    """
    return lower_convolution(node, operands, channel_axis=0)


def run(params: ConvolutionParams, x: Array, *_constants: Array) -> tuple[Array, ...]:
    """Run CONV_2D: int8 or uint8 [S, N, H, W, C] -> int8 or uint8 [S, N, OH, OW, O]."""
    accumulators = accumulate_in_order(params.prepared, x, params.filter.input_zero_point)
    return (params.filter.finish(accumulators),)


def samples_last(params: ConvolutionParams, operands: Operands) -> float | None:
    """Return what images with samples last gain, as `gain_in_order`."""
    _, height, width, _ = operands.input(0).shape
    return gain_in_order(params.prepared, params.filter.step_map is not None, (height, width))


def lower_convolution(node: Node, operands: Operands, channel_axis: int) -> ConvolutionParams:
    """Decide the integers of a convolution.

    Args:
        node: with window attributes.
        operands: input [N, H, W, C]; weights [O, KH, KW, C/groups] or depthwise [1, KH, KW, O]; bias [O].
        channel_axis: 0, or 3 for depthwise.
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
    groups = channels // depth
    width = window.output_size(size)[1]
    prepared = prepare_convolution(shaped, window, groups, input_magnitude(operands), width)
    return ConvolutionParams(found, groups, prepared)

"""CONV_2D in GAP9's arithmetic; a depthwise one is grouped with one input channel a group (docs/gap9.md, 6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.accumulate import Convolution, accumulate_in_order, gain_in_order, prepare_convolution
from tflq.interpreter.kernels.gap9.filter import FilterParams, finish, input_magnitude, lower_filter
from tflq.interpreter.kernels.gap9.windows import window_of_node


@dataclass(frozen=True, eq=False)
class ConvolutionParams:
    """The integers of one convolution.

    Attributes:
        filter: weights, bias, M and N.
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
    """Run CONV_2D: codes [S, N, H, W, C] -> codes [S, N, OH, OW, O]."""
    accumulators = accumulate_in_order(params.prepared, x, params.filter.input_zero_point)
    return (finish(params.filter, accumulators),)


def samples_last(params: ConvolutionParams, operands: Operands) -> float | None:
    """Return what images with samples last gain, as `gain_in_order`."""
    _, height, width, _ = operands.input(0).shape
    return gain_in_order(params.prepared, params.filter.rescaling.step_map is not None, (height, width))


def lower_convolution(node: Node, operands: Operands, channel_axis: int) -> ConvolutionParams:
    """Decide the integers of a convolution.

    Args:
        node: with window attributes.
        operands: input [N, H, W, C]; weights [O, KH, KW, C/groups] or depthwise [1, KH, KW, O]; bias [O].
        channel_axis: 0, or 3 for depthwise.
    """
    found = lower_filter(operands, channel_axis)
    x, weights = operands.input(0), operands.input(1)
    # Depthwise weights with the output channel first are [O, 1, KH, KW].
    shaped = found.weights if channel_axis == 0 else np.moveaxis(found.weights, 1, 3)
    channels, depth = x.shape[3], shaped.shape[3]
    if channels % depth:
        raise GraphError(f"weights {weights.shape} do not fit {channels} input channels")
    window = window_of_node(node, x.shape, weights.shape)
    groups = channels // depth
    prepared = prepare_convolution(shaped, window, groups, input_magnitude(operands))
    return ConvolutionParams(found, groups, prepared)

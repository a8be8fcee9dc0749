"""Convolution: int8 x int8 products, bias of 32 or 48 bits, M / 2^N per tensor or per channel (docs/aipu.md, 3)."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.accumulate import Convolution, accumulate_in_order, gain_in_order, prepare_convolution
from tflq.interpreter.kernels.aipu.filter import FilterParams, lower_filter
from tflq.interpreter.kernels.aipu.scales import magnitude_of
from tflq.interpreter.kernels.aipu.windows import window_of


@dataclass(frozen=True, eq=False)
class ConvolutionParams:
    """The integers of one convolution.

    Attributes:
        filter: weights [O, KH, KW, C / groups], bias, M and N.
        prepared: the weights packed for accumulation, and the window.
    """

    filter: FilterParams
    prepared: Convolution


def lower(node: Node, operands: Operands) -> ConvolutionParams:
    """Decide the integers of Convolution.

    Raises:
        UnsupportedError: as `lower_filter`; weights that do not fit the groups.
        GraphError: shapes that contradict each other.
    """
    x, output = operands.input(0), operands.output()
    found = lower_filter(node, operands)
    groups = node.attributes.integer("group", 1)
    if found.weights.shape[3] * groups != x.shape[3]:
        raise UnsupportedError(
            f"group={groups}: weights of {found.weights.shape[3]} channels do not fit an input of {x.shape[3]}"
        )
    window = window_of(node, x, output)
    width = window.output_size((x.shape[1], x.shape[2]))[1]
    return ConvolutionParams(found, prepare_convolution(found.weights, window, groups, magnitude_of(x), width))


def run(params: ConvolutionParams, x: Array, *_constants: Array) -> tuple[Array, ...]:
    """Run Convolution: codes [S, N, H, W, C] -> codes [S, N, OH, OW, O]."""
    accumulators = accumulate_in_order(params.prepared, x, params.filter.pad)
    return (params.filter.finish(accumulators),)


def samples_last(params: ConvolutionParams, operands: Operands) -> float | None:
    """Return what images with samples last gain, as `gain_in_order`."""
    _, height, width, _ = operands.input(0).shape
    return gain_in_order(params.prepared, params.filter.step_map is not None, (height, width))

"""DepthwiseConv: one filter a channel, always one multiplier a channel (docs/aipu.md, 3)."""

from __future__ import annotations

from tflq.graph import Node, Operands
from tflq.interpreter.accumulate import prepare_convolution
from tflq.interpreter.kernels.aipu.convolution import ConvolutionParams, run, samples_last
from tflq.interpreter.kernels.aipu.filter import lower_filter
from tflq.interpreter.kernels.aipu.scales import magnitude_of
from tflq.interpreter.kernels.aipu.windows import window_of

__all__ = ["lower", "run", "samples_last"]


def lower(node: Node, operands: Operands) -> ConvolutionParams:
    """Decide the integers of DepthwiseConv.

    Raises:
        UnsupportedError: as `lower_filter`.
        GraphError: shapes that contradict each other.
    """
    x = operands.input(0)
    found = lower_filter(node, operands)
    window = window_of(node, x, operands.output())
    width = window.output_size((x.shape[1], x.shape[2]))[1]
    prepared = prepare_convolution(found.weights, window, x.shape[3], magnitude_of(x), width)
    return ConvolutionParams(found, prepared)

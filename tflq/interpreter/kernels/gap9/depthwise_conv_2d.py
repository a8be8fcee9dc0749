"""DEPTHWISE_CONV_2D in GAP9's arithmetic: conv_2d.py with one input channel a group."""

from __future__ import annotations

from tflq.graph import Node, Operands
from tflq.interpreter.kernels.gap9.conv_2d import ConvolutionParams, lower_convolution, run, samples_last

__all__ = ["lower", "run", "samples_last"]


def lower(node: Node, operands: Operands) -> ConvolutionParams:
    """Decide the integers of DEPTHWISE_CONV_2D, weights [1, KH, KW, O]; raises as conv_2d.lower."""
    return lower_convolution(node, operands, channel_axis=3)

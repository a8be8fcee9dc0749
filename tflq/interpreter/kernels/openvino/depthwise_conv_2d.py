"""DEPTHWISE_CONV_2D on codes (filter.py); activations may be quantised per channel."""

from __future__ import annotations

from tflq.graph import Node, Operands
from tflq.interpreter.kernels.openvino.conv_2d import ConvolutionParams, lower_convolution, run, samples_last

__all__ = ["lower", "run", "samples_last"]


def lower(node: Node, operands: Operands) -> ConvolutionParams:
    """Decide the numbers of DEPTHWISE_CONV_2D; raises as `lower_convolution`."""
    return lower_convolution(node, operands, channel_axis=3)

"""DEPTHWISE_CONV_2D of dequantised logarithmic codes; one z for all channels (docs/nnie.md, 5)."""

from __future__ import annotations

from tflq.graph import Node, Operands
from tflq.interpreter.kernels.nnie.conv_2d import LogarithmicConvolution, lower_logarithmic
from tflq.interpreter.kernels.nnie.conv_2d import run as run

__all__ = ["lower", "run"]


def lower(node: Node, operands: Operands) -> LogarithmicConvolution:
    """Decide codes and window of DEPTHWISE_CONV_2D; raises as `lower_logarithmic`."""
    return lower_logarithmic(node, operands, channels_last=True)

"""DEPTHWISE_CONV_2D of float32. Equal to TFLite bit for bit.

Output channel c * multiplier + m reads input channel c; the multiplier follows from the shapes.

Source: TFLite kernels/depthwise_conv.cc; the sums are in accumulate/sequential.py.
"""

from __future__ import annotations

import numpy as np

from tflq.graph import Array, Node, Operands
from tflq.interpreter.accumulate.sequential import Floats
from tflq.interpreter.kernels.float.convolution import FloatConvolution, lower_convolution, run_convolution


def lower(node: Node, operands: Operands) -> FloatConvolution:
    """Decide window, groups and bounds of DEPTHWISE_CONV_2D; raises as `lower_convolution`."""
    return lower_convolution(node, operands, channels_last=True)


def run(params: FloatConvolution, x: Floats, weights: Floats, bias: Floats | None = None) -> tuple[Array, ...]:
    """Run DEPTHWISE_CONV_2D: [S, N, H, W, C], weights [1, KH, KW, O], bias [O] -> [S, N, OH, OW, O]."""
    return run_convolution(params, x, np.swapaxes(weights, -4, -1), bias)

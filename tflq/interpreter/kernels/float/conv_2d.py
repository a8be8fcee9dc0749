"""CONV_2D of float32, groups and dilation included. Equal to TFLite bit for bit.

Source: TFLite kernels/conv.cc; the sums are in accumulate/sequential.py.
"""

from __future__ import annotations

from tflq.graph import Array, Node, Operands
from tflq.interpreter.accumulate.sequential import Floats
from tflq.interpreter.kernels.float.convolution import FloatConvolution, lower_convolution, run_convolution
from tflq.interpreter.operands.conv_2d_strides import require_strides


def lower(node: Node, operands: Operands) -> FloatConvolution:
    """Decide window, groups and bounds of CONV_2D; raises as `lower_convolution`."""
    require_strides(node)
    return lower_convolution(node, operands, channels_last=False)


def run(params: FloatConvolution, x: Floats, weights: Floats, bias: Floats | None = None) -> tuple[Array, ...]:
    """Run CONV_2D: [S, N, H, W, C], weights [O, KH, KW, C/groups], bias [O] -> [S, N, OH, OW, O]."""
    return run_convolution(params, x, weights, bias)

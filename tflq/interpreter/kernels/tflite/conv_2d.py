"""CONV_2D in TFLite's integer arithmetic: int8, uint8, int16 with 8-bit weights; groups and dilation (docs/tflite.md).

Source: TFLite kernels/conv.cc; the arithmetic is in quantised_convolution.py.
"""

from __future__ import annotations

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.tflite.quantised_convolution import (
    QuantisedConvolution,
    lower_convolution,
    run_convolution,
)


def lower(node: Node, operands: Operands) -> QuantisedConvolution:
    """Decide the integers of CONV_2D; raises as `lower_convolution`."""
    return lower_convolution(node, operands, channels_last=False, allow_int32_bias_for_int16=True)


def run(integers: QuantisedConvolution, x: Array, weights: Array, bias: Array | None = None) -> tuple[Array, ...]:
    """Run CONV_2D: T[S, N, H, W, C], weights [O, KH, KW, C/groups], bias [O] -> T[S, N, OH, OW, O]."""
    return run_convolution(integers, x, weights, bias)

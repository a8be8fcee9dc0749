"""CONV_2D in TFLite's integer arithmetic: int8, uint8, int16 with 8-bit weights; groups and dilation (docs/tflite.md).

Source: TFLite kernels/conv.cc; the arithmetic is in quantised_convolution.py.
"""

from __future__ import annotations

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.tflite.hybrid_convolution import HybridConvolution, is_hybrid, lower_hybrid, run_hybrid
from tflq.interpreter.kernels.tflite.quantised_convolution import (
    QuantisedConvolution,
    gain_of_samples_last,
    lower_convolution,
    run_convolution,
)
from tflq.interpreter.operands.conv_2d_strides import require_strides


def lower(node: Node, operands: Operands) -> QuantisedConvolution | HybridConvolution:
    """Decide the integers of CONV_2D; raises as `lower_convolution` and, for float inputs, `lower_hybrid`."""
    require_strides(node)
    if is_hybrid(operands):
        return lower_hybrid(node, operands, depthwise=False)
    return lower_convolution(node, operands, channels_last=False, allow_int32_bias_for_int16=True)


def run(
    params: QuantisedConvolution | HybridConvolution, x: Array, weights: Array, bias: Array | None = None
) -> tuple[Array, ...]:
    """Run CONV_2D: T[S, N, H, W, C], weights [O, KH, KW, C/groups], bias [O] -> T[S, N, OH, OW, O]."""
    if isinstance(params, HybridConvolution):
        return run_hybrid(params, x, weights, bias, depthwise=False)
    return run_convolution(params, x, weights, bias)


def samples_last(params: QuantisedConvolution | HybridConvolution, operands: Operands) -> float | None:
    """Return what images with samples last gain; None for hybrid layers, and as `gain_of_samples_last`."""
    return None if isinstance(params, HybridConvolution) else gain_of_samples_last(params, operands)

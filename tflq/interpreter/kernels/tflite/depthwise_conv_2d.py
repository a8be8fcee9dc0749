"""DEPTHWISE_CONV_2D in TFLite's integer arithmetic: int8, uint8, int16 with 8-bit weights; dilation (docs/tflite.md).

Output channel c * multiplier + m reads input channel c. The multiplier follows from the shapes: the reference kernel
ignores the attribute `depth_multiplier`. int16 has int64 accumulators only.

Source: TFLite kernels/depthwise_conv.cc; the arithmetic is in quantised_convolution.py.
"""

from __future__ import annotations

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.tflite.hybrid_convolution import HybridConvolution, is_hybrid, lower_hybrid, run_hybrid
from tflq.interpreter.kernels.tflite.quantised_convolution import (
    QuantisedConvolution,
    as_grouped,
    gain_of_samples_last,
    lower_convolution,
    run_convolution,
)


def lower(node: Node, operands: Operands) -> QuantisedConvolution | HybridConvolution:
    """Decide the integers of DEPTHWISE_CONV_2D; raises as `lower_convolution` and, for float inputs, `lower_hybrid`."""
    if is_hybrid(operands):
        return lower_hybrid(node, operands, depthwise=True)
    return lower_convolution(node, operands, channels_last=True, allow_int32_bias_for_int16=False)


def run(
    params: QuantisedConvolution | HybridConvolution, x: Array, weights: Array, bias: Array | None = None
) -> tuple[Array, ...]:
    """Run DEPTHWISE_CONV_2D: T[S, N, H, W, C], weights [1, KH, KW, O], bias [O] -> T[S, N, OH, OW, O]."""
    if isinstance(params, HybridConvolution):
        return run_hybrid(params, x, weights, bias, depthwise=True)
    own = weights if params.constants else as_grouped(weights, channels_last=True)  # constants are prepared already
    return run_convolution(params, x, own, bias)


def samples_last(params: QuantisedConvolution | HybridConvolution, operands: Operands) -> float | None:
    """Return what images with samples last gain; None for hybrid layers, and as `gain_of_samples_last`."""
    return None if isinstance(params, HybridConvolution) else gain_of_samples_last(params, operands)

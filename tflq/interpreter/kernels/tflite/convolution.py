"""CONV_2D and DEPTHWISE_CONV_2D in TFLite's integer arithmetic: int8, uint8, int16 with 8-bit weights (docs/tflite.md).

Groups and dilation included. Output channel c * multiplier + m of a depthwise convolution reads input channel c; the
multiplier follows from the shapes: the reference kernel ignores the attribute `depth_multiplier`. Its int16 has int64
accumulators only. The arithmetic is in quantised_convolution.py; float inputs with integer weights go to
hybrid_convolution.py.

CONV_2D: T[S, N, H, W, C], weights [O, KH, KW, C/groups], bias [O] -> T[S, N, OH, OW, O]. Source: TFLite
kernels/conv.cc.
DEPTHWISE_CONV_2D: T[S, N, H, W, C], weights [1, KH, KW, O], bias [O] -> T[S, N, OH, OW, O]. Source: TFLite
kernels/depthwise_conv.cc.
"""

from __future__ import annotations

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.tflite.hybrid_convolution import HybridConvolution, lower_hybrid, run_hybrid
from tflq.interpreter.kernels.tflite.quantised_convolution import (
    QuantisedConvolution,
    as_grouped,
    gain_of_samples_last,
    lower_convolution,
    run_convolution,
)
from tflq.interpreter.operands.checks import meets_integer_weights
from tflq.interpreter.operands.windows import require_strides
from tflq.interpreter.registry import Kernel

_Params = QuantisedConvolution | HybridConvolution


def _lower_conv_2d(node: Node, operands: Operands) -> _Params:
    require_strides(node)
    if meets_integer_weights(operands):
        return lower_hybrid(node, operands, depthwise=False)
    return lower_convolution(node, operands, channels_last=False, allow_int32_bias_for_int16=True)


def _run_conv_2d(params: _Params, x: Array, weights: Array, bias: Array | None = None) -> tuple[Array, ...]:
    if isinstance(params, HybridConvolution):
        return run_hybrid(params, x, weights, bias, depthwise=False)
    return run_convolution(params, x, weights, bias)


def _lower_depthwise(node: Node, operands: Operands) -> _Params:
    if meets_integer_weights(operands):
        return lower_hybrid(node, operands, depthwise=True)
    return lower_convolution(node, operands, channels_last=True, allow_int32_bias_for_int16=False)


def _run_depthwise(params: _Params, x: Array, weights: Array, bias: Array | None = None) -> tuple[Array, ...]:
    if isinstance(params, HybridConvolution):
        return run_hybrid(params, x, weights, bias, depthwise=True)
    own = weights if params.constants else as_grouped(weights, channels_last=True)  # constants are packed already
    return run_convolution(params, x, own, bias)


def _samples_last(params: object, operands: Operands) -> float | None:
    return gain_of_samples_last(params, operands) if isinstance(params, QuantisedConvolution) else None


KERNELS = {
    "conv_2d": Kernel(_lower_conv_2d, _run_conv_2d, samples_last=_samples_last),
    "depthwise_conv_2d": Kernel(_lower_depthwise, _run_depthwise, samples_last=_samples_last),
}

"""CONV_2D of dequantised logarithmic codes; sums of float32 in TFLite's order, float bias (docs/nnie.md, 5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.float.convolution import FloatConvolution, lower_convolution, run_convolution
from tflq.interpreter.kernels.nnie.logarithm import Floats
from tflq.interpreter.kernels.nnie.weights import WeightedLayer, lower_weights


@dataclass(frozen=True, eq=False)
class LogarithmicConvolution:
    """A convolution.

    Attributes:
        layer: z, codes and what they stand for.
        window: window, groups and clamp.
        channels_last: whether the weights are depthwise, [1, KH, KW, O].
    """

    layer: WeightedLayer
    window: FloatConvolution
    channels_last: bool


def lower(node: Node, operands: Operands) -> LogarithmicConvolution:
    """Decide codes and window of CONV_2D; raises as `lower_weights` and `lower_convolution`."""
    return lower_logarithmic(node, operands, channels_last=False)


def run(params: LogarithmicConvolution, x: Floats, _weights: Array, bias: Floats | None = None) -> tuple[Array, ...]:
    """Run it: [S, N, H, W, C], bias [O] -> [S, N, OH, OW, O], float32."""
    weights = params.layer.weights[None]
    shaped = np.swapaxes(weights, -4, -1) if params.channels_last else weights
    return run_convolution(params.window, params.layer.inputs.apply(x), shaped, bias)


def lower_logarithmic(node: Node, operands: Operands, channels_last: bool) -> LogarithmicConvolution:
    """Decide codes and window of a convolution, depthwise if the weights' channels stand last."""
    return LogarithmicConvolution(
        lower_weights(node, operands), lower_convolution(node, operands, channels_last), channels_last
    )

"""Convolutions, FULLY_CONNECTED, TRANSPOSE_CONV of dequantised logarithmic quantized values (docs/nnie.md, 5).

Weights have one z for all channels. Sums of float32 run in TFLite's order, with a float bias: the float kernels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tflq.arrays import Singles
from tflq.errors import GraphError, InputError, UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.float.convolution import FloatConvolution, run_convolution
from tflq.interpreter.kernels.float.convolution import lower_convolution as lower_float
from tflq.interpreter.kernels.float.products import (
    FloatFullyConnected,
    FloatTransposeConv,
    lower_fully_connected,
    lower_transpose_conv,
    run_fully_connected,
    run_transpose_conv,
)
from tflq.interpreter.kernels.nnie.inputs import InputQuantiser, input_quantiser
from tflq.interpreter.kernels.nnie.logarithm import dequantise, quantise, true_form, z_of
from tflq.interpreter.registry import Kernel


@dataclass(frozen=True, eq=False)
class WeightedLayer:
    """What a layer with weights decides.

    Attributes:
        inputs: how it sees its inputs.
        weight_z: z_w, from the layer's largest |w|.
        sign: int8[*shape of the weights].
        codes: int16[*shape], q.
        stored: uint8[*shape] in true form for 8 bits; None for 16, whose packing is unpublished.
        weights: float32[*shape], what the quantized values stand for.
    """

    inputs: InputQuantiser
    weight_z: int
    sign: NDArray[np.int8]
    codes: NDArray[np.int16]
    stored: NDArray[np.uint8] | None
    weights: Singles


def lower_weights(node: Node, operands: Operands, position: int = 0) -> WeightedLayer:
    """Decide z_a and z_w and quantise the weights, operand 1, which must be constant; the data is at `position`.

    Raises:
        GraphError: weights computed at run time, or infinite.
        UnsupportedError: as `input_quantiser` and `z_of`.
    """
    inputs = input_quantiser(node, operands, position)
    weights = np.asarray(operands.constant(1), np.float32)
    if weights.size == 0:
        raise GraphError(f"{operands.where}: weights of shape {weights.shape} hold nothing")
    try:
        z = z_of(np.abs(weights).max(), inputs.scheme, inputs.formula)
        sign, codes = quantise(weights, z, inputs.scheme, inputs.formula)
    except (InputError, UnsupportedError) as error:
        raise GraphError(f"weights '{operands.input(1).name}': {error}") from None
    stored = true_form(sign, codes) if inputs.scheme.bits == 8 else None
    return WeightedLayer(inputs, z, sign, codes, stored, dequantise(sign, codes, z, inputs.scheme))


@dataclass(frozen=True, eq=False)
class LogarithmicConvolution:
    """A convolution.

    Attributes:
        layer: z, quantized values and what they stand for.
        window: window, groups and clamp.
        channels_last: whether the weights are depthwise, [1, KH, KW, O].
    """

    layer: WeightedLayer
    window: FloatConvolution
    channels_last: bool


@dataclass(frozen=True, eq=False)
class LogarithmicProduct:
    """A fully connected layer.

    Attributes:
        layer: z, quantized values and what they stand for.
        product: what the float kernel decided.
    """

    layer: WeightedLayer
    product: FloatFullyConnected


@dataclass(frozen=True, eq=False)
class LogarithmicTransposed:
    """A transposed convolution.

    Attributes:
        layer: z, quantized values and what they stand for.
        inner: what the float kernel decided.
    """

    layer: WeightedLayer
    inner: FloatTransposeConv


def lower_convolution(node: Node, operands: Operands, channels_last: bool) -> LogarithmicConvolution:
    """Decide quantized values and window; raises as `lower_weights` and the float kernel."""
    return LogarithmicConvolution(
        lower_weights(node, operands), lower_float(node, operands, channels_last), channels_last
    )


def lower_product(node: Node, operands: Operands) -> LogarithmicProduct:
    """Decide quantized values and shapes; raises as `lower_weights` and the float kernel."""
    layer = lower_weights(node, operands)
    return LogarithmicProduct(layer, replace(lower_fully_connected(node, operands), constant=layer.weights))


def run_logarithmic_convolution(
    params: LogarithmicConvolution, x: Singles, _weights: Array, bias: Singles | None = None
) -> tuple[Array, ...]:
    """Run a convolution: [S, N, H, W, C], bias [O] -> [S, N, OH, OW, O], float32."""
    weights = params.layer.weights[None]
    shaped = np.swapaxes(weights, -4, -1) if params.channels_last else weights
    return run_convolution(params.window, params.layer.inputs.apply(x), shaped, bias)


def run_product(
    params: LogarithmicProduct, x: Singles, _weights: Array, bias: Singles | None = None
) -> tuple[Array, ...]:
    """Run a fully connected layer: [S, ..., K], bias [O] -> [S, rows, O], float32."""
    quantised = params.layer.inputs.apply(x)
    return run_fully_connected(params.product, quantised, params.layer.weights[None], bias)


def lower_transposed(node: Node, operands: Operands) -> LogarithmicTransposed:
    """Decide quantized values and place; raises as `lower_weights` and the float kernel."""
    return LogarithmicTransposed(lower_weights(node, operands, 2), lower_transpose_conv(node, operands))


def run_transposed(
    params: LogarithmicTransposed, shape: Array, _weights: Array, x: Singles, bias: Singles | None = None
) -> tuple[Array, ...]:
    """Run a transposed convolution: [S, N, H, W, C], bias [O] -> [S, N, OH, OW, O], float32."""
    return run_transpose_conv(params.inner, shape, params.layer.weights[None], params.layer.inputs.apply(x), bias)


_dense, _depthwise = (partial(lower_convolution, channels_last=last) for last in (False, True))
_RULE, _SOURCE = "float32 sums of products of what logarithmic quantized values stand for", "docs/nnie.md, 5"
KERNELS = {
    "conv_2d": Kernel(_dense, run_logarithmic_convolution, _RULE, _SOURCE),
    "depthwise_conv_2d": Kernel(_depthwise, run_logarithmic_convolution, _RULE, _SOURCE),
    "fully_connected": Kernel(lower_product, run_product, _RULE, _SOURCE),
    "transpose_conv": Kernel(lower_transposed, run_transposed, _RULE, _SOURCE),
}

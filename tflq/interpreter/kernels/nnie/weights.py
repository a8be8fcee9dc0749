"""Weights of a layer in logarithmic codes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.errors import GraphError, InputError, UnsupportedError
from tflq.graph import Node, Operands
from tflq.interpreter.kernels.nnie.inputs import InputQuantiser, input_quantiser
from tflq.interpreter.kernels.nnie.logarithm import Floats, dequantise, quantise, true_form, z_of


@dataclass(frozen=True, eq=False)
class WeightedLayer:
    """What a layer with weights decides.

    Attributes:
        inputs: how it sees its inputs.
        weight_z: z_w, from the layer's largest |w|.
        sign: int8[*shape of the weights].
        codes: int16[*shape], q.
        stored: uint8[*shape] in true form for 8 bits; None for 16, whose packing is unpublished.
        weights: float32[*shape], what the codes stand for.
    """

    inputs: InputQuantiser
    weight_z: int
    sign: NDArray[np.int8]
    codes: NDArray[np.int16]
    stored: NDArray[np.uint8] | None
    weights: Floats


def lower_weights(node: Node, operands: Operands) -> WeightedLayer:
    """Decide z_a and z_w and quantise the weights, operand 1, which must be constant.

    Raises:
        GraphError: weights computed at run time, or infinite.
        UnsupportedError: as `input_quantiser` and `z_of`.
    """
    inputs = input_quantiser(node, operands)
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

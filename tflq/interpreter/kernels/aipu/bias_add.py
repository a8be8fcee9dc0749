"""BiasAdd as the tool computes it: y = clamp(RNE((q + b) * M * 2^-N) - zp_y), b at scale s_x * s_w (docs/aipu.md, 5).

The tool means a BatchNorm whose weight is 1, quantised with the activation's mode and 8 bits, but multiplies the data
by 1 instead of by that weight's code, so that the biases dominate. Source: Compass Optimizer, ops/bias_add.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.codes import OutputCodes, codes_of
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, type_of_multiplier
from tflq.interpreter.kernels.aipu.scales import bits_of, constant_codes, required_constant, scale_of
from tflq.interpreter.kernels.aipu.stated import multiplier_of
from tflq.interpreter.kernels.aipu.written import LINEAR, Written, rescale_keys
from tflq.interpreter.numerics.fixed_point import Integers

BIASES = "biases"


@dataclass(frozen=True, eq=False)
class BiasAddParams:
    """The integers of one BiasAdd: biases, shaped for their axis, M and N, how codes are stored."""

    biases: Integers
    rescale: Multiplier
    codes: OutputCodes
    written: Written


def lower(node: Node, operands: Operands) -> BiasAddParams:
    """Decide M and N of s_y / s_b. Input [...]; biases int32[C] on the axis, the last unless the node names one.

    Raises:
        UnsupportedError: biases that do not fit the axis.
    """
    x, output, constant = operands.input(0), operands.output(), required_constant(operands, BIASES)
    biases = constant_codes(operands, BIASES)
    axis = node.attributes.integer("axis", -1) % len(x.shape)
    if biases.shape != (x.shape[axis],):
        raise UnsupportedError(f"biases {biases.shape} on an axis of {x.shape[axis]}; allowed is one for each place")
    bits = bits_of(output)
    found = multiplier_of(node, scale_of(output) / scale_of(constant), bits)
    written = Written(keys=rescale_keys(LINEAR, found, type_of_multiplier(bits)))
    shaped = biases.reshape(-1, *(1,) * (len(x.shape) - 1 - axis))
    return BiasAddParams(shaped, found, codes_of(output), written)


def run(params: BiasAddParams, x: Array, _biases: Array) -> tuple[Array, ...]:
    """Run BiasAdd: codes [S, ...] -> codes [S, ...]."""
    return (params.codes.requantise(x.astype(np.int64) + params.biases, params.rescale),)

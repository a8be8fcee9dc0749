"""Layers of one number a channel: BatchNorm and BiasAdd (docs/aipu.md, 3 and 5).

BatchNorm: one weight and bias a channel, r = s_y / (s_x * s_w).
Source: Compass Optimizer, ops/bn.py.

BiasAdd as the tool computes it: y = clamp(RNE((q + b) * M * 2^-N) - zp_y), b at scale s_x * s_w.
The tool means a BatchNorm whose weight is 1, quantised with the activation's mode and 8 bits, but multiplies the data
by 1 instead of by that weight's code, so that the biases dominate.
Source: Compass Optimizer, ops/bias_add.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.filter import FilterParams, lower_filter
from tflq.interpreter.kernels.aipu.imported import multiplier_of
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, OutputCodes, codes_of
from tflq.interpreter.kernels.aipu.scales import bits_of, constant_codes, required_constant, scale_of
from tflq.interpreter.numerics.fixed_point import Integers
from tflq.interpreter.registry import Kernel


@dataclass(frozen=True, eq=False)
class BatchNormParams:
    """The integers of one batch normalisation, the channel last."""

    filter: FilterParams


def lower_batch_norm(node: Node, operands: Operands) -> BatchNormParams:
    """Decide M and N.

    Raises:
        UnsupportedError: another axis than the last.
    """
    rank = len(operands.input(0).shape)
    axis = node.attributes.integer("axis", -1)
    if axis % rank != rank - 1:
        raise UnsupportedError(f"axis={axis}; allowed is the last, {rank - 1}")
    found = lower_filter(node, operands)
    return BatchNormParams(found)


def run_batch_norm(params: BatchNormParams, x: Array, *_constants: Array) -> tuple[Array, ...]:
    """Run BatchNorm: codes [S, ..., C] -> codes [S, ..., C]."""
    return (params.filter.finish(x.astype(np.int64) * params.filter.weights),)


BIASES = "biases"


@dataclass(frozen=True, eq=False)
class BiasAddParams:
    """The integers of one BiasAdd: biases, shaped for their axis, M and N, how codes are stored."""

    biases: Integers
    rescale: Multiplier
    codes: OutputCodes


def lower_bias_add(node: Node, operands: Operands) -> BiasAddParams:
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
    shaped = biases.reshape(-1, *(1,) * (len(x.shape) - 1 - axis))
    return BiasAddParams(shaped, found, codes_of(output))


def run_bias_add(params: BiasAddParams, x: Array, _biases: Array) -> tuple[Array, ...]:
    """Run BiasAdd: codes [S, ...] -> codes [S, ...]."""
    return (params.codes.requantise(x.astype(np.int64) + params.biases, params.rescale),)


KERNELS = {
    "batch_norm": Kernel(lower_batch_norm, run_batch_norm),
    "bias_add": Kernel(lower_bias_add, run_bias_add),
}

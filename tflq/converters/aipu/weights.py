"""Weights and biases of linear layers (docs/aipu.md, 3).

Source: Compass Optimizer, ops/conv.py, linear_op_quantize; utils/quant_tool_utils.py, the per-channel branch.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.converters.aipu.options import LayerOptions
from tflq.converters.aipu.ranges import symmetric_scale
from tflq.graph import Affine, DType, Tensor
from tflq.interpreter.fixed_point import Integers
from tflq.interpreter.kernels.aipu.filter import filter_ratios
from tflq.interpreter.kernels.aipu.multiplier import find_multipliers, unify_shifts
from tflq.interpreter.kernels.aipu.scales import Single, affine_of, bits_of, encode, offset_of, reciprocal, scale_of


def quantise_weights(weights: Tensor, x: Tensor, output: Tensor, options: LayerOptions, per_channel: bool) -> Tensor:
    """Return integer weights [O, ...], symmetric and signed, one scale each channel or one for all.

    Where a channel's multiplier would be 0, channels share scales in groups of 2, 4, 8, ...
    """
    data = np.asarray(weights.data, np.float32)
    largest: Single = np.abs(data).reshape(data.shape[0], -1).max(axis=1, initial=0)
    affine = _type(largest if per_channel else largest.max(initial=0), options)
    group = 2
    while per_channel and group < 2 * data.shape[0] and _has_dead_channel(weights, affine, x, output):
        affine = _type(_grouped(largest, group), options)
        group *= 2
    return _constant(weights, encode(data, affine), affine)


def quantise_biases(biases: Tensor, weights: Tensor, x: Tensor, options: LayerOptions) -> Tensor:
    """Return b_q = clamp(clamp(RNE(s_x * s_w * b)) + zp_x * sum(w_q)), one for each output channel."""
    s = (scale_of(x) * reciprocal(weights.affine)).astype(np.float32)
    affine = affine_of(s, 0, options.bias_bits)
    codes = np.asarray(weights.data, np.int64)
    sums = offset_of(x) * codes.reshape(codes.shape[0], -1).sum(axis=1)
    # The tool adds in float32: biases beyond 2^24 lose bits.
    folded = (encode(np.asarray(biases.data), affine).astype(np.float32) + sums.astype(np.float32)).astype(np.float64)
    limited = np.clip(folded, affine.minimum_code, affine.maximum_code).astype(np.int64)
    return _constant(biases, limited, affine)


def _type(largest: Single | np.float32, options: LayerOptions) -> Affine:
    s = symmetric_scale(largest, options.weight_bits, True, options.restricted_weights)
    return affine_of(s, 0, options.weight_bits, True, options.restricted_weights)


def _has_dead_channel(weights: Tensor, affine: Affine, x: Tensor, output: Tensor) -> bool:
    ratios = filter_ratios(x, replace(weights, quantisation=affine), output)
    return bool(affine.is_per_axis and np.any(unify_shifts(find_multipliers(ratios, bits_of(output))).m == 0))


def _grouped(largest: Single, group: int) -> Single:
    """Return the largest of each run of `group` channels, for each channel."""
    starts = np.arange(0, largest.size, group)
    merged: Single = np.repeat(np.maximum.reduceat(largest, starts), group)[: largest.size]
    return merged


def _constant(old: Tensor, codes: Integers, affine: Affine) -> Tensor:
    dtype = next(d for d in (DType.INT8, DType.INT16, DType.INT32, DType.INT64) if affine.bits <= d.bits)
    data = codes.astype(dtype.storage)
    data.setflags(write=False)
    return replace(old, dtype=dtype, quantisation=affine, data=data, range=None)

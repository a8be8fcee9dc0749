"""Weights and biases of linear layers (docs/rules/aipu/values.md#linear-layers).

Source: Compass Optimizer, ops/conv.py, linear_op_quantize; utils/quant_tool_utils.py, the per-channel branch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tflq.arrays import Integers, Singles
from tflq.converters.aipu.options import LayerOptions
from tflq.converters.aipu.ranges import symmetric_scale
from tflq.graph import Affine, DType, Tensor
from tflq.interpreter.kernels.aipu.float_sums import sums_of_weights
from tflq.interpreter.kernels.aipu.linear import filter_ratios
from tflq.interpreter.kernels.aipu.multiplier import find_multipliers, unify_shifts
from tflq.interpreter.kernels.aipu.scales import affine_of, bits_of, encode, offset_of, reciprocal, scale_of


def quantize_weights(weights: Tensor, x: Tensor, output: Tensor, options: LayerOptions, groups: int) -> Tensor:
    """Return integer weights [O, ...], symmetric and signed.

    Args:
        weights: real.
        x: the layer's input.
        output: the layer's output.
        options: the requested ones.
        groups: in how many groups of neighbors the channels share a scale: O for one each, 0 for one scale in all.
            Where a channel's multiplier would be 0, there are half as many groups, and again.
    """
    ratios = lambda affine: filter_ratios(x, replace(weights, quantization=affine), output)  # noqa: E731
    return scaled_weights(weights, ratios, options, groups, options.multiplier_bits or bits_of(output))


def scaled_weights(
    weights: Tensor, ratios: Callable[[Affine], Singles], options: LayerOptions, groups: int, bits: int
) -> Tensor:
    """Return integer weights as `quantize_weights` does, for any ratios of scales and multipliers of `bits`."""
    data = np.asarray(weights.data, np.float32)
    largest: Singles = np.abs(data).reshape(data.shape[0], -1).max(axis=1, initial=0)
    affine = _type(_grouped(largest, groups) if groups else largest.max(initial=0), options)
    while groups > 1 and affine.is_per_axis and np.any(unify_shifts(find_multipliers(ratios(affine), bits)).m == 0):
        groups //= 2
        affine = _type(_grouped(largest, groups), options)
    return _constant(weights, encode(data, affine), affine)


def quantize_biases(biases: Tensor, weights: Tensor, x: Tensor, options: LayerOptions) -> Tensor:
    """Return b_q = clamp(clamp(RNE(s_x * s_w * b)) + sum(zp_x * w_q)), one for each output channel.

    Of these the hardware may keep its effective bits only: k = ceil(max(log2(max / lmax), log2(min / lmin))) with the
    limits of that width; the low k bits become 0. Source: Compass Optimizer, ops/conv.py, clear_lower_bits_for_bias.
    """
    s = (scale_of(x) * reciprocal(weights.affine)).astype(np.float32)
    affine = affine_of(s, 0, options.bias_bits)
    # The Optimizer adds in float32: sums and biases beyond 2^24 lose bits.
    data = np.asarray(biases.data)
    sums = sums_of_weights(offset_of(x), np.asarray(weights.data)).reshape(-1, *(1,) * (data.ndim - 1))
    folded = (encode(data, affine).astype(np.float32) + sums).astype(np.float64)
    limited = np.clip(folded, affine.minimum_code, affine.maximum_code).astype(np.int64)
    return _constant(biases, cleared(limited, options.bias_effective_bits), affine)


def cleared(codes: Integers, bits: int, least: int = 0) -> Integers:
    """Return quantized values whose lowest bits, `least` or more, are 0 so that the others fit `bits`; 0 for all."""
    if not bits:
        return (codes >> least) << least
    low, high = min(int(codes.min(initial=0)), -1), max(int(codes.max(initial=0)), 1)
    excess = max(np.log2(high / ((1 << (bits - 1)) - 1)), np.log2(low / -(1 << (bits - 1))))
    count = max(int(np.ceil(excess)), least)
    return (codes >> count) << count


def _type(largest: Singles | np.float32, options: LayerOptions) -> Affine:
    s = symmetric_scale(largest, options.weight_bits, True, options.restricted_weights)
    return affine_of(s, 0, options.weight_bits, True, options.restricted_weights)


def _grouped(largest: Singles, groups: int) -> Singles:
    """Return the largest of each of some groups of neighbors, for each channel; the last group may be shorter."""
    run = -(-largest.size // groups)
    merged: Singles = np.repeat(np.maximum.reduceat(largest, np.arange(0, largest.size, run)), run)[: largest.size]
    return merged


def _constant(old: Tensor, codes: Integers, affine: Affine) -> Tensor:
    dtype = next(d for d in (DType.INT8, DType.INT16, DType.INT32, DType.INT64) if affine.bits <= d.bits)
    data = codes.astype(dtype.storage)
    data.setflags(write=False)
    return replace(old, dtype=dtype, quantization=affine, data=data, range=None)

"""Weights and biases of filters in GAP9's types (docs/gap9.md, 3 and 4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Affine, Array
from tflq.graph.quantisation import FloatArray, IntArray
from tflq.interpreter.kernels.gap9.rounding import round_half_up

_SMALLEST = 1e-8
_LARGEST_BIAS = (1 << 31) - 1


@dataclass(frozen=True, eq=False)
class FilterConstants:
    """Constants of one filter.

    Attributes:
        codes: weights, shaped as given: int8, or uint8 with the zero point 2^(bits-1) for NE16.
        weights: their scale, one for each output channel along `axis`.
        bias: B = rnd(b / (S_x * S_w)), int32[O]; zero points are folded when the graph is lowered.
        bias_scale: S_x * S_w, [O].
        guarded: channels whose bias would not fit int32, so that S_w became 1.
    """

    codes: Array
    weights: Affine
    bias: IntArray
    bias_scale: FloatArray
    guarded: tuple[int, ...]


def quantise_filter(
    weights: FloatArray, bias: FloatArray | None, input_scale: FloatArray, axis: int, bits: int, offset_binary: bool
) -> FilterConstants:
    """Quantise weights per output channel, symmetric and narrow, and the bias at the scale of the accumulator.

    S_w[c] = max|w_c| / (2^(b-1) - 1), numbers below 1e-8 counting as 0 and a channel of zeros as 1;
    q = clip(rnd(w / S_w), -(2^(b-1) - 1), 2^(b-1) - 1); B = clip32(rnd(b / (S_x * S_w))). Where |b / (S_x * S_w)|
    exceeds 2^31 - 1, S_w of that channel is 1.

    Args:
        weights: real; float64 where they come from integers, float32 where the file holds them so.
        bias: real [O], or None.
        input_scale: S_x, [1].
        axis: of the output channels.
        bits: b, 2..8.
        offset_binary: whether codes are stored as q + 2^(b-1) (NE16).
    """
    flat = np.moveaxis(weights, axis, 0).reshape(weights.shape[axis], -1)
    kind = flat.dtype.type
    largest = np.abs(flat).max(axis=1, initial=0)
    largest = np.where(largest < _SMALLEST, kind(0), largest)
    half = (1 << (bits - 1)) - 1
    scale = np.where(largest == 0, kind(1), largest) / kind(half)
    real_bias = np.zeros(len(scale), kind) if bias is None else bias
    guarded = np.abs(real_bias / (input_scale * scale)) > _LARGEST_BIAS
    scale = np.where(guarded, kind(1), scale)
    affine = Affine(
        scale, np.full(1, (half + 1) * offset_binary, np.int64), axis, bits, not offset_binary, narrow_range=True
    )
    q = np.clip(round_half_up(weights / affine.along(weights.ndim)[0]), -half, half).astype(np.int64)
    bias_scale = input_scale * scale
    codes = np.clip(round_half_up(real_bias / bias_scale), -_LARGEST_BIAS - 1, _LARGEST_BIAS).astype(np.int64)
    stored = (q + affine.zero_point[0]).astype(np.uint8 if offset_binary else np.int8)
    return FilterConstants(stored, affine, codes, bias_scale, tuple(int(c) for c in np.flatnonzero(guarded)))

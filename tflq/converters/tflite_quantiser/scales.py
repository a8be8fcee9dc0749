"""From real ranges to scales, zero points and quantized values, as TFLite's quantisation specification has them.

Scales are float32. All are at least 2^-60, so that the product of two, which is a bias's scale, is a normal float32.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Doubles, Singles
from tflq.converters.passes.rewrite import channel_maxima
from tflq.errors import UnsupportedError
from tflq.graph import Affine, Array
from tflq.interpreter.numerics.fixed_point import round_half_away

BITS = {"int8": 8, "int16x8": 16}
"""Width of an activation."""

_SMALLEST_SCALE = 2.0**-60
_MOST_BIAS = {"int8": 2.0**30, "int16x8": 2.0**39}
"""Largest magnitude of a bias in units of its scale: half of int32, and what a 16x8 kernel has left of 40 bits."""


def activation(low: float, high: float, kind: str, symmetric: bool = False, narrow: bool = False) -> Affine:
    """Return the quantisation of an activation.

    The range is widened to hold 0; one that is 0 only becomes [0, 1].
    int8: scale = f32((high - low) / 255), zero point = clamp(rha(-128 - low / scale)), so that 0 has a quantized value
        of its own
    (rha: round half away from zero). Narrow: quantized values from -127, 254 steps. Symmetric int8: max|.| / 127,
    int16: max|.| / 32767, zero point 0.

    Raises:
        UnsupportedError: a bound that is NaN or infinite.
    """
    if not np.isfinite([low, high]).all():
        raise UnsupportedError(f"range [{low:g}, {high:g}]; both bounds must be finite: calibrate on other samples")
    low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        high = 1.0
    bits = BITS[kind]
    top = (1 << (bits - 1)) - 1
    if symmetric or bits == 16:
        return Affine.per_tensor(_scale(max(-low, high) / top), 0, bits)
    bottom = -128 + narrow
    scale = _scale((high - low) / (top - bottom))
    zero_point = int(np.clip(round_half_away(np.float64(bottom - low / float(scale))), bottom, top))
    return Affine.per_tensor(scale, zero_point, bits)


@dataclass(frozen=True, eq=False)
class WeightScales:
    """How weights become quantized values.

    Attributes:
        affine: as the file states it.
        steps: quantized values are -steps..steps.
        largest: float32[1] or [C], the magnitude that `steps` stands for.
    """

    affine: Affine
    steps: int
    largest: Singles


def weights(
    values: Array,
    axis: int | None,
    bias: Doubles | None,
    input_scale: float,
    kind: str,
    half_range: float | None,
    steps: int,
) -> WeightScales:
    """Return the symmetric quantisation of weights: scale[c] = f32(max|w[c]| / steps), zero points 0.

    A channel of zeros takes the largest scale of the others. A scale grows until |bias| / (input_scale * scale) is at
    most 2^30, or 2^39 for 16x8.

    Args:
        values: real weights.
        axis: of the channels; None for one scale.
        bias: float64[C], or None.
        input_scale: 0 where the bias stays float.
        kind: "int8" or "int16x8".
        half_range: the largest weight that the model states, in place of that of the values.
        steps: quantized values are -steps..steps.

    Raises:
        UnsupportedError: a weight that is NaN or infinite.
    """
    reals = values.astype(np.float64)
    if not np.isfinite(reals).all():
        raise UnsupportedError("a weight is NaN or infinite; weights must be finite")
    largest = channel_maxima(reals, axis)
    if half_range is not None:
        largest = np.full_like(largest, half_range)
    largest = np.where(largest > 0, largest, largest.max(initial=0.0) or 1.0)
    if bias is not None and input_scale:
        needed = steps * np.abs(bias) / (input_scale * _MOST_BIAS[kind])
        largest = np.maximum(largest, needed if axis is not None else needed.max(initial=0.0))
    largest = np.maximum(largest, steps * _SMALLEST_SCALE)
    rounded = (largest / steps).astype(np.float32)
    own = axis if rounded.size > 1 else None
    affine = Affine(rounded, np.zeros(rounded.size, np.int64), own, narrow_range=True)
    return WeightScales(affine, steps, largest.astype(np.float32))


def codes(values: Array, affine: Affine) -> Array:
    """Return clip(rha(f32(x / scale)) + zero_point), as TFLite's QUANTIZE computes it: int8, int16 or uint8[*shape]."""
    scale, zero_point = affine.along(values.ndim)
    with np.errstate(over="ignore"):  # a padding value that stands for minus infinity
        ratio = values.astype(np.float32) / scale.astype(np.float32)
    found = round_half_away(np.clip(ratio.astype(np.float64), -(2.0**31), 2.0**31)) + zero_point
    kept = np.clip(found, affine.minimum_code, affine.maximum_code)
    narrow = np.int8 if affine.signed else np.uint8
    return np.asarray(kept.astype(narrow if affine.bits == 8 else np.int16))


def unsigned(affine: Affine | None) -> Affine | None:
    """Return the uint8 quantisation that stands for the same real numbers as one of int8; others as they are."""
    if affine is None or affine.bits != 8 or not affine.signed:
        return affine
    return Affine.per_tensor(affine.scale[0], int(affine.zero_point[0]) + 128, 8, signed=False)


def weight_codes(values: Array, found: WeightScales, is_hybrid: bool) -> Array:
    """Return clip(rha(f32(w * f32(steps / largest))), -steps, steps): int8[*shape].

    The product with a rounded reciprocal decides ties, where `quantized values` divides by the scale: a weight of 63.5
    steps becomes 63 or 64. Beside float activations it is rha(w / (largest / steps)) in float64.

    Source: TFLite tools/optimize/quantization_utils.cc, SymmetricPerChannelQuantization; TensorFlow
    compiler/mlir/quantization/common/uniform_quantized_types.cc and MLIR's UniformSupport.h for float activations.
    """
    shape = [1] * values.ndim
    if found.affine.axis is not None:
        shape[found.affine.axis] = -1
    if is_hybrid:
        ratio = values.astype(np.float64) / (found.largest.astype(np.float64) / found.steps).reshape(shape)
    else:
        inverse = (np.float32(found.steps) / found.largest).astype(np.float32).reshape(shape)
        with np.errstate(over="ignore"):
            ratio = (values.astype(np.float32) * inverse).astype(np.float64)
    return np.asarray(np.clip(round_half_away(ratio), -found.steps, found.steps).astype(np.int8))


def bias_codes(values: Array, scale: Doubles, kind: str) -> Array:
    """Return rha(b / scale): int32[C], or int64[C] for 16x8."""
    kept = round_half_away(values.astype(np.float64) / scale)
    most = 2.0**31 - 1 if kind == "int8" else 2.0**62
    return np.asarray(np.clip(kept, -most, most).astype(np.int32 if kind == "int8" else np.int64))


def _scale(value: float) -> np.float32:
    scale: np.float32 = np.float32(max(value, _SMALLEST_SCALE))
    return scale

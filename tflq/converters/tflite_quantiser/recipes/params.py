"""Scales, zero points and quantized values in the floats that ai-edge-quantizer computes them in.

Everything is float32 where its calibration or the weights are: (max - min) / 255 rounds once as a difference and once
as a quotient, where TFLite's own quantiser has float64. Behind an operator with a demanded scale its ranges are
float64, and stay so. Halves go to even.

Source: ai-edge-quantizer 0.10 (Apache-2.0), uniform_quantize/uniform_quantize_tensor.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tflq.arrays import Reals, Singles
from tflq.converters.tflite_quantiser.recipes.rules import Widths
from tflq.graph import Affine, Array
from tflq.interpreter.numerics.bfloat16 import narrow, widen

Bounds = tuple[Reals, Reals]
"""Least and greatest real value, of one shape, float32 or float64."""

_SMALLEST = 1e-9
_LARGEST_BLOCK = 65280


@dataclass(frozen=True, eq=False)
class Params:
    """How one operand is quantised.

    Attributes:
        scale: as it was computed; a file holds it as float32.
        zero_point: integers of the same shape.
        widths: what was asked for.
        axis: of the channels, or of the blocks; None for one scale.
        data: quantized values of a constant; float16[*shape] where the widths are of floats.
        rotation: size of the Hadamard matrix behind the input (in front of the weights); 0 for none.
        multiplier: float32[K] that the input is multiplied with, where an algorithm scales columns of the weights.
    """

    scale: Reals
    zero_point: Array
    widths: Widths
    axis: int | None = None
    data: Array | None = None
    rotation: int = 0
    multiplier: Singles | None = None

    def is_like(self, other: Params | None) -> bool:
        """Whether an activation of these params needs no QUANTIZE to be read with the others."""
        return (
            other is not None
            and self.widths == other.widths
            and np.array_equal(self.scale, other.scale)
            and np.array_equal(self.zero_point, other.zero_point)
        )

    @property
    def affine(self) -> Affine:
        """As a file states it."""
        scales = self.scale.astype(np.float32).reshape(-1)
        axis = self.axis if scales.size > 1 else None
        signed = self.widths.dtype != "UINT"
        return Affine(scales, self.zero_point.astype(np.int64).reshape(-1), axis, self.widths.bits, signed)


def limits(widths: Widths) -> tuple[float, float]:
    """Return the smallest and largest quantized value."""
    if widths.dtype == "UINT":
        return 0.0, float(2**widths.bits - 1)
    return float(-(2 ** (widths.bits - 1))), float(2 ** (widths.bits - 1) - 1)


def from_bounds(bounds: Bounds, widths: Widths, axis: int | None = None, clip: Reals | None = None) -> Params:
    """Return scale and zero point of a range.

    Symmetric: scale = max(|low|, |high|, 1e-9) / qmax, the maximum cut to `clip` where an algorithm gives one. Else
    scale = max(max(high, 0) - min(low, 0), 1e-9) / (qmax - qmin), zero point = rint(qmin - min(low, 0) / scale).
    Scales of blocks are rounded to bfloat16, then to float16.
    """
    low, high = bounds
    smallest, largest = limits(widths)
    if widths.symmetric:
        bound = np.maximum(np.maximum(np.abs(low), np.abs(high)), _SMALLEST)
        if clip is not None:
            if widths.block_size:  # what float16 holds, as a float64 would say it
                clip = np.minimum(clip, np.float64(_LARGEST_BLOCK * (2**widths.bits - 1)))
            bound = np.clip(bound, -clip, clip)
        scale = bound / largest
        zero_point = np.zeros(np.shape(scale), np.int32)
    else:
        low, high = np.minimum(low, np.zeros_like(low)), np.maximum(high, np.zeros_like(high))
        scale = np.maximum(high - low, _SMALLEST) / (largest - smallest)
        zero_point = np.rint(smallest - low / scale)
    if widths.block_size:
        scale = widen(narrow(np.asarray(scale))).astype(np.float16).astype(np.float32)
    return Params(np.asarray(scale), np.asarray(zero_point).astype(_storage(widths)), widths, axis)


def quantised(values: Reals, params: Params) -> Params:
    """Return the params with the quantized values of a constant: clip(rint(values / scale + zero point)).

    From 8 bits on, symmetric values leave out the smallest integer; int4 and int2 do not. Where a scale is 0 (blocks of
    zeros below float16) they are 0.
    """
    widths, scale, zero_point = params.widths, params.scale, params.zero_point
    if widths.block_size:
        scale = np.repeat(scale, widths.block_size, axis=-1)
        zero_point = np.repeat(zero_point, widths.block_size, axis=-1)
    elif scale.ndim != values.ndim:
        shape = [1] * values.ndim
        if scale.size > 1 and params.axis is not None:
            shape[params.axis] = -1
        scale, zero_point = scale.reshape(shape), zero_point.reshape(shape)
    return replace(params, data=_rounded(values, scale, zero_point, widths))


def _rounded(values: Reals, scale: Reals, zero_point: Array, widths: Widths) -> Array:
    smallest, largest = limits(widths)
    smallest += widths.symmetric and widths.bits >= 8
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        real = np.divide(values, scale)
        real = np.add(real, zero_point).astype(real.dtype, copy=False)
        codes = np.clip(np.rint(real), smallest, largest)
        return np.asarray(np.where(np.isnan(codes), 0, codes)).astype(_storage(widths))


def bias(values: Reals, input_: Params, weights: Params) -> Params:
    """Return the bias in units of input scale times weight scale, a product in the float of both.

    It is int32, or int64 for activations of 16 bits, of which 32 bits are used.
    """
    scale = np.squeeze(input_.scale * weights.scale).reshape(-1)
    widths = Widths(32)
    data = _rounded(values, scale, np.zeros(scale.shape, np.int32), widths)
    if input_.widths.bits == 16:
        widths, data = replace(widths, bits=64), data.astype(np.int64)
    return Params(scale, np.zeros(scale.shape, np.int32), widths, 0 if scale.size > 1 else None, data)


def grown(values: Reals, bias_: Reals, input_: Params, weights: Params) -> Params | None:
    """Return the weights in larger scales where the bias would need more than 32 bits; None where it fits.

    Such channels get |bias| / (2^30 input scale). ai-edge-quantizer writes what the cast of an overflow leaves, the
    smallest integer for a large positive bias; a channel of zeros, whose scale is 1e-9 / 127, is enough for that.
    """
    shape = weights.scale.shape
    scale = np.squeeze(input_.scale * weights.scale).reshape(-1)
    too_large = np.abs(bias_ / scale) >= 2.0**31
    if not too_large.any():
        return None
    needed = np.where(too_large, np.abs(bias_) / (input_.scale.reshape(-1) * 2.0**30), 0.0)
    needed = needed if scale.size > 1 else needed.max(keepdims=True)
    larger = np.maximum(weights.scale, needed.reshape(shape)).astype(weights.scale.dtype)
    return quantised(values, replace(weights, scale=larger))


def bounds_of_codes(params: Params) -> Bounds:
    """Return the range that the quantized values reach, two float64; symmetric ones from -high."""
    zero_point, scale = int(params.zero_point.item()), np.float64(params.scale.item())
    low, high = (np.asarray((q - zero_point) * scale) for q in limits(params.widths))
    return (-high if params.widths.symmetric else low), high


def _storage(widths: Widths) -> np.dtype[np.generic]:
    sign = "u" if widths.dtype == "UINT" else ""
    return np.dtype(f"{sign}int{max(8, 1 << (widths.bits - 1).bit_length())}")

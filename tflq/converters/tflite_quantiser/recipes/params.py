"""Scales, zero points and quantized values in the floats that ai-edge-quantizer computes them in.

Everything is float32 where its calibration or the weights are: (max - min) / 255 rounds once as a difference and once
as a quotient, where TFLite's own quantiser has float64. Behind an operator with a demanded scale its ranges are
float64, and stay so. Halves go to even.

Sums are numpy's, in its order; those of float32 belong to the release of numpy (docs/tflite_target.md).
Source: ai-edge-quantizer 0.10 (Apache-2.0), uniform_quantize/*.py; the papers that the functions name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tflq.arrays import Reals, Singles
from tflq.converters.tflite_quantiser.recipes.rules import CHANNELWISE, MSE, OCTAV, Widths
from tflq.errors import UnsupportedError
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


_MSE_STEPS = {8: 0.05408, 4: 0.37755}
"""Bits -> step in units of the root mean square, at which normal values have the smallest error."""

_OCTAV_ROUNDS = 10


def weights_of(values: Singles, widths: Widths, axis: int | None, algorithm: str) -> Params:
    """Return scale, zero point and quantized values of weights.

    Args:
        values: the weights.
        widths: of the quantized values; blocks lie along the last axis.
        axis: of the channels, where the granularity asks for them.
        algorithm: what finds the scale: the largest magnitude where it is neither MSE nor OCTAV.

    Raises:
        UnsupportedError: weights that the algorithm does not take.
    """
    if algorithm in (MSE, OCTAV) and not widths.symmetric:
        raise UnsupportedError(f"{algorithm} takes symmetric weights only")
    channel = axis if widths.granularity == CHANNELWISE else None
    if algorithm == MSE:
        return quantised(values, _least_error(values, widths, channel))
    bounds, clip = bounds_of(values, widths, channel), None
    if algorithm == OCTAV:
        clip = _clipping(_in_blocks(values, widths), widths.bits, _others(values, widths, channel))
        clip = clip.reshape(bounds[0].shape)
    return quantised(values, from_bounds(bounds, widths, axis_of(widths, channel), clip))


def bounds_of(values: Reals, widths: Widths, channel: int | None) -> Bounds:
    """Return least and greatest weight: of all, of each channel, or of each block: [..., K / block size]."""
    axes, keep = _others(values, widths, channel), not widths.block_size
    parted = _in_blocks(values, widths)
    return parted.min(axis=axes, keepdims=keep), parted.max(axis=axes, keepdims=keep)


def _in_blocks(values: Reals, widths: Widths) -> Reals:
    size = widths.block_size
    if not size:
        return values
    if values.shape[-1] % size:
        raise UnsupportedError(
            f"its rows have {values.shape[-1]} weights, which blocks of {size} do not divide; take a smaller block, or "
            f"leave the layer out by a rule"
        )
    return values.reshape(*values.shape[:-1], -1, size)


def _others(values: Reals, widths: Widths, channel: int | None) -> tuple[int, ...] | None:
    """Return the axes that share a scale; None for all."""
    if widths.block_size:
        return (values.ndim,)
    return None if channel is None else tuple(a for a in range(values.ndim) if a != channel)


def axis_of(widths: Widths, channel: int | None) -> int | None:
    """Return the axis that a file states for the scales: that of the channels, or of the blocks."""
    return 1 if widths.block_size else channel


def _least_error(values: Singles, widths: Widths, channel: int | None) -> Params:
    """Return scale = step * sqrt(mean of w^2), the step as it is best for a normal density."""
    if widths.block_size or widths.bits not in _MSE_STEPS:
        raise UnsupportedError(f"MSE has weights of {' or '.join(map(str, _MSE_STEPS))} bits, not in blocks")
    power = np.mean(values**2, axis=_others(values, widths, channel), keepdims=True)
    scale = np.asarray(_MSE_STEPS[widths.bits] * np.sqrt(power))
    return Params(scale, np.zeros(scale.shape, np.int32), widths, channel)


def _clipping(values: Singles, bits: int, axes: tuple[int, ...] | None) -> Singles:
    """Return the magnitude c at which clipping and rounding err least together, by Newton's steps from 1.

    c = (sum of |w| >= c) / (4^-bits / 3 (number of all) + (1 - 4^-bits / 3) (number of |w| >= c)), ten times or until
    all stay. Source: Sakr et al., Optimal Clipping and Magnitude-aware Differentiation (arXiv 2206.06501), eq. 6.
    """
    noise = np.asarray(4.0**-bits / 3.0, np.float32)
    count = values.size if axes is None else np.prod([values.shape[a] for a in axes])
    shape = (1,) if axes is None else tuple(1 if a in axes else n for a, n in enumerate(values.shape))
    found = np.ones(shape, np.float32)
    for _ in range(_OCTAV_ROUNDS):
        above, below = values >= found, values <= -found
        clipped = np.count_nonzero(above, axis=axes, keepdims=True).astype(np.float32)
        clipped += np.count_nonzero(below, axis=axes, keepdims=True)
        total = np.sum(values, axis=axes, where=above, keepdims=True, dtype=np.float32)
        total = total - np.sum(values, axis=axes, where=below, keepdims=True)
        clipped *= 1.0 - noise
        before, found = found, np.asarray(total / (clipped + noise * count).astype(np.float32), np.float32)
        if np.allclose(before, found):
            break
    return found


def rotated(values: Singles, widths: Widths, axis: int | None) -> Params:
    """Return OCTAV's quantisation of weights that are multiplied with a Hadamard matrix along their last axis.

    The matrix is the largest power of two that divides the axis, at most `most_rotated`, once for each part of it.

    Raises:
        UnsupportedError: an odd number of columns.
    """
    size = int(np.gcd(values.shape[-1], 1 << 30))
    if widths.most_rotated:
        size = min(size, 1 << (widths.most_rotated.bit_length() - 1))
    if size == 1 or values.ndim < 2:
        raise UnsupportedError(
            f"its rows have {values.shape[-1]} weights; a Hadamard matrix needs an even number: leave it out by a rule"
        )
    matrix = hadamard(size) / np.sqrt(size, dtype=np.float32)
    product = np.matmul(values.reshape(-1, size), matrix).reshape(values.shape)
    return replace(weights_of(product, widths, axis, OCTAV), rotation=size)


def hadamard(size: int) -> NDArray[np.int8]:
    """Return the Hadamard matrix of a power of two, of 1 and -1: H(2n) = [[H, H], [H, -H]]."""
    matrix = np.ones((1, 1), np.int8)
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix

"""The algorithms that find scales and quantized values of weights, as ai-edge-quantizer computes them.

Sums are numpy's, in its order; those of float32 belong to the release of numpy (docs/tflite_target.md).
Source: ai-edge-quantizer 0.10 (Apache-2.0), uniform_quantize/*.py; the papers that the functions name.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tflq.arrays import Reals, Singles
from tflq.converters.tflite_quantiser.recipes.params import Bounds, Params, from_bounds, quantised
from tflq.converters.tflite_quantiser.recipes.rules import CHANNELWISE, MSE, OCTAV, Widths
from tflq.errors import UnsupportedError

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

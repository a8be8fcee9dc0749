"""Exact matrix products of integers, in the fastest type that represents every partial sum.

Both stacks of matrices may be computed at run time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tflq.arrays import Doubles, Singles
from tflq.graph import Array
from tflq.interpreter.accumulate.taps import of_matrices
from tflq.interpreter.recording.primitive import Ids, Taps, TapsOf, primitive

FLOAT32_EXACT = 1 << 24
"""float32 holds all integers up to this magnitude."""
FLOAT64_EXACT = 1 << 53
"""float64 holds all integers up to this magnitude."""


def exact_dtype(magnitude: int) -> np.dtype[np.generic]:
    """Return the fastest type in which sums of integer products stay exact, in any order, fused or not.

    Every partial sum is an integer of at most `magnitude`: float32 below 2^24, float64 below 2^53, else int64.

    Args:
        magnitude: sum of |weight| * max|x| over the taps of the worst channel.
    """
    if magnitude < FLOAT32_EXACT:
        return np.dtype(np.float32)
    return np.dtype(np.float64 if magnitude < FLOAT64_EXACT else np.int64)


def worst_magnitude(weights: Array, input_magnitude: int) -> int:
    """Return max over channels of sum|w| * input_magnitude, and at least input_magnitude.

    Args:
        weights: integers [O, ...], output channel first.
        input_magnitude: largest |x| among stored quantized values, the padding value included.
    """
    if weights.size == 0:
        return input_magnitude
    sums = np.abs(weights.astype(np.int64)).reshape(weights.shape[0], -1).sum(axis=1)
    return max(int(sums.max()), 1) * input_magnitude


def accumulator_range(weights: Array, minimum: int, maximum: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the smallest and the largest accumulator of each channel, over all inputs in [minimum, maximum].

    lowest[o] = sum over taps of min(w * minimum, w * maximum); highest likewise. Both are reached.

    Args:
        weights: integers [O, ...], output channel first.
        minimum: smallest stored quantized value, padding value included.
        maximum: largest.

    Returns:
        int64[O] twice.
    """
    flat = weights.astype(np.int64).reshape(weights.shape[0], -1)
    positive = np.maximum(flat, 0).sum(axis=1)
    negative = np.minimum(flat, 0).sum(axis=1)
    return positive * minimum + negative * maximum, positive * maximum + negative * minimum


@dataclass(frozen=True, eq=False)
class MatrixProduct:
    """Weights packed for `accumulate_product`.

    Attributes:
        columns: [K, O] in the accumulator's type.
    """

    columns: Array

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The accumulator's type: float32, float64 or int64."""
        return self.columns.dtype


def prepare_product(weights: Array, input_magnitude: int) -> MatrixProduct:
    """Make weights ready.

    Args:
        weights: integers [O, K].
        input_magnitude: largest |x| of the stored quantized values.
    """
    dtype = exact_dtype(worst_magnitude(weights, input_magnitude))
    return MatrixProduct(np.ascontiguousarray(weights.T, dtype))


def of_product(prepared: MatrixProduct, x: Ids) -> TapsOf:
    """Taps of `accumulate_product`."""
    return lambda index: Taps(x[index[:-1]], prepared.columns[:, index[-1]], note=f"row {list(index[1:-1])}")


@primitive("sum of products", "over the taps", of_product)
def accumulate_product(prepared: MatrixProduct, x: Array) -> Array:
    """acc[..., o] = sum over k of x[..., k] * w[o, k], exactly.

    Args:
        prepared: weights [O, K].
        x: integers [..., K] of at most the magnitude stated when the weights were prepared.

    Returns:
        float32, float64 or int64 [..., O] of exact integers.
    """
    rows = x.reshape(-1, x.shape[-1]).astype(prepared.dtype)
    result: Array = np.matmul(rows, prepared.columns)
    return result.reshape(*x.shape[:-1], prepared.columns.shape[1])


@primitive("sum of products", "over the taps", of_matrices)
def exact_products(x: Array, y: Array, magnitude: int) -> Array:
    """Return x @ y exactly.

    Args:
        x: integers [..., A, K].
        y: integers [..., K, B]; stacks broadcast.
        magnitude: bound on every sum of |x * y| over k.

    Returns:
        float32, float64 or int64 [..., A, B] of exact integers.
    """
    dtype = exact_dtype(magnitude)
    return np.asarray(np.matmul(x.astype(dtype), y.astype(dtype)))


@primitive("sum of products", "over the taps, in order, each rounded to float32", of_matrices)
def sequential_products(x: Singles, y: Singles) -> Singles:
    """Return x @ y of float32, each sum from 0 in the order of k, without fused multiply-add.

    Args:
        x: [..., A, K].
        y: [..., K, B]; stacks broadcast.
    """
    shape = (*np.broadcast_shapes(x.shape[:-2], y.shape[:-2]), x.shape[-2], y.shape[-1])
    total = np.zeros(shape, np.float32)
    product = np.empty_like(total)
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(x.shape[-1]):
            np.multiply(x[..., :, k, None], y[..., None, k, :], out=product)
            total += product
    return total


@primitive("sum of products", "over the taps, in order, each product added with one rounding to float32", of_matrices)
def fused_products(x: Singles, y: Singles) -> Singles:
    """Return x @ y of float32, each sum from 0 in the order of k, by fused multiply-add: total = f32(x * y + total).

    Args:
        x: [..., A, K].
        y: [..., K, B]; stacks broadcast.
    """
    shape = (*np.broadcast_shapes(x.shape[:-2], y.shape[:-2]), x.shape[-2], y.shape[-1])
    total = np.zeros(shape, np.float32)
    left, right = x.astype(np.float64), y.astype(np.float64)
    for k in range(x.shape[-1]):
        total = fused(left[..., :, k, None], right[..., None, k, :], total)
    return total


def fused(a: NDArray[Any], b: NDArray[Any] | np.float32, c: NDArray[Any] | np.float32) -> Singles:
    """Return a * b + c of float32 numbers, of any type, rounded once to float32.

    A product of two float32 is exact in float64. Their sum is rounded to odd there, which keeps the information for a
    second rounding to float32.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        product = a.astype(np.float64, copy=False) * b
        total: Singles = _sum_to_odd(product, np.asarray(c, np.float64)).astype(np.float32)
    return total


def _sum_to_odd(a: Doubles, b: Doubles) -> Doubles:
    """Return a + b, rounded to odd: if it is not exact, the neighbor in float64 with last bit 1."""
    total = a + b
    part = total - a
    error = (a - (total - part)) + (b - part)
    bits = total.view(np.int64)
    inexact = np.isfinite(total) & (error != 0) & (bits & 1 == 0)
    return (bits + np.where(inexact, np.where((error > 0) == (total > 0), 1, -1), 0)).view(np.float64)

"""Products of stacks of matrices, both of which may be computed at run time."""

from __future__ import annotations

import numpy as np

from tflq.graph import Array
from tflq.interpreter.accumulate import taps
from tflq.interpreter.accumulate.bounds import exact_dtype
from tflq.interpreter.accumulate.sequential import Floats
from tflq.interpreter.recording.primitive import primitive


@primitive("sum of products", "over the taps", taps.of_matrices)
def exact_products(x: Array, y: Array, magnitude: int) -> Array:
    """Return x @ y exactly.

    Args:
        x: integers [..., A, K].
        y: integers [..., K, B]; stacks broadcast.
        magnitude: bound on every sum of |x * y| over k.

    Returns:
        float32, float64 or int64 [..., A, B] whose values are the exact integers.
    """
    dtype = exact_dtype(magnitude)
    return np.asarray(np.matmul(x.astype(dtype), y.astype(dtype)))


@primitive("sum of products", "over the taps, in order, each rounded to float32", taps.of_matrices)
def sequential_products(x: Floats, y: Floats) -> Floats:
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

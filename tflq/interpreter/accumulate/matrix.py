"""Exact matrix products of integers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array
from tflq.interpreter.accumulate import taps
from tflq.interpreter.accumulate.bounds import exact_dtype, worst_magnitude
from tflq.interpreter.recording.primitive import primitive


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


@primitive("sum of products", "over the taps", taps.of_product)
def accumulate_product(prepared: MatrixProduct, x: Array) -> Array:
    """acc[..., o] = sum over k of x[..., k] * w[o, k], exactly.

    Args:
        prepared: weights [O, K].
        x: integers [..., K] of at most the magnitude stated when the weights were prepared.

    Returns:
        float32, float64 or int64 [..., O] whose values are the exact integers.
    """
    rows = x.reshape(-1, x.shape[-1]).astype(prepared.dtype)
    result: Array = np.matmul(rows, prepared.columns)
    return result.reshape(*x.shape[:-1], prepared.columns.shape[1])

"""LOGISTIC of float32: 1 where x > 16.619047, exp(x) where x < -9, else f32(1 / f32(1 + exp(-x))).

exp is computed in float64 and rounded once, TFLite's is the host's expf, off by one unit in the last place in about one
of 1700 results. 1 + exp then differs by one unit at most, its reciprocal by two, and the last rounding adds one: three.
Source: TFLite kernels/internal/reference/logistic.h.
"""

from __future__ import annotations

import numpy as np

from tflq.graph import Array
from tflq.interpreter.kernels.float.unary import Unary
from tflq.interpreter.kernels.float.unary import lower_unary as lower

UPPER = np.float32(16.619047164916992)
LOWER = np.float32(-9)

__all__ = ["lower", "run"]


def run(integers: Unary, x: Array) -> tuple[Array, ...]:  # noqa: ARG001
    """Run it: float32[S, *shape] -> float32[S, *shape]."""
    one = np.float32(1)
    with np.errstate(over="ignore", under="ignore"):
        rising = np.exp(x.astype(np.float64)).astype(np.float32)
        falling = np.exp(-x.astype(np.float64)).astype(np.float32)
    middle = one / (one + falling)
    return (np.where(np.greater(x, UPPER), one, np.where(np.less(x, LOWER), rising, middle)),)

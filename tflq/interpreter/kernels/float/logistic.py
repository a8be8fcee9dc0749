"""LOGISTIC of float32, float16, bfloat16: 1 where x > 16.619047, exp(x) where x < -9, else f32(1 / f32(1 + exp(-x))).

exp is computed in float64 and rounded once, TFLite's is the host's expf, off by one unit in the last place in about one
of 1700 results. 1 + exp then differs by one unit at most, its reciprocal by two, and the last rounding adds one: three.
float16 and bfloat16 are computed in float32 and rounded once.
Source: TFLite kernels/internal/reference/logistic.h.
"""

from __future__ import annotations

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import Elementwise, lower_unary
from tflq.interpreter.numerics.bfloat16 import from_float32, to_float32

UPPER = np.float32(16.619047164916992)
LOWER = np.float32(-9)
TYPES = (DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16)


def lower(node: Node, operands: Operands) -> Elementwise:  # noqa: ARG001
    """Check the types; errors as `lower_unary`."""
    return lower_unary(operands, TYPES)


def run(params: Elementwise, x: Array) -> tuple[Array, ...]:
    """Run it: T[S, *shape] -> T[S, *shape]."""
    one, wide = np.float32(1), to_float32(params.dtype, x).astype(np.float64)
    with np.errstate(over="ignore", under="ignore"):
        rising = np.exp(wide).astype(np.float32)
        falling = np.exp(-wide).astype(np.float32)
    middle = one / (one + falling)
    result = np.where(np.greater(wide, UPPER), one, np.where(np.less(wide, LOWER), rising, middle))
    return (from_float32(params.dtype, result),)

"""SIGN: 1 above 0, -1 below, 0 at 0 and -0; NaN stays.

Source: TFLite kernels/sign.cc.
"""

from __future__ import annotations

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import Elementwise, lower_unary

TYPES = (DType.FLOAT32, DType.FLOAT64, DType.INT32)


def lower(node: Node, operands: Operands) -> Elementwise:  # noqa: ARG001
    """Check the types; errors as `lower_unary`."""
    return lower_unary(operands, TYPES)


def run(params: Elementwise, x: Array) -> tuple[Array, ...]:  # noqa: ARG001
    """Run SIGN: T[S, *shape] -> T[S, *shape]."""
    return (np.asarray(np.sign(x) + x.dtype.type(0)),)

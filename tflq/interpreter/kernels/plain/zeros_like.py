"""ZEROS_LIKE: zeros in the shape of x.

Source: TFLite kernels/zeros_like.cc.
"""

from __future__ import annotations

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import Elementwise, lower_unary

TYPES = (DType.FLOAT32, DType.INT32, DType.INT64)


def lower(node: Node, operands: Operands) -> Elementwise:  # noqa: ARG001
    """Check the types; errors as `lower_unary`."""
    return lower_unary(operands, TYPES)


def run(params: Elementwise, x: Array) -> tuple[Array, ...]:  # noqa: ARG001
    """Run ZEROS_LIKE: T[S, *shape] -> T[S, *shape]."""
    return (np.zeros_like(x),)

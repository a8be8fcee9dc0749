"""SQUARE: f32(x * x). Equal to TFLite bit for bit.

Source: TFLite kernels/elementwise.cc.
"""

from __future__ import annotations

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import Elementwise, lower_unary

TYPES = (DType.FLOAT32,)


def lower(node: Node, operands: Operands) -> Elementwise:  # noqa: ARG001
    """Check the types; errors as `lower_unary`."""
    return lower_unary(operands, TYPES)


def run(params: Elementwise, x: Array) -> tuple[Array, ...]:  # noqa: ARG001
    """Run SQUARE: T[S, *shape] -> T[S, *shape]."""
    with np.errstate(all="ignore"):
        return (np.asarray(np.multiply(x, x)),)

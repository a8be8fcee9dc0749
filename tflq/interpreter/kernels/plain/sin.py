"""SIN: sin(x), computed in float64 and rounded once; within 1 unit in the last place of TFLite's (sinf of the host).

Source: TFLite kernels/elementwise.cc.
"""

from __future__ import annotations

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import Elementwise, lower_unary
from tflq.interpreter.numerics import transcendental

TYPES = (DType.FLOAT32, DType.FLOAT16)


def lower(node: Node, operands: Operands) -> Elementwise:  # noqa: ARG001
    """Check the types; errors as `lower_unary`."""
    return lower_unary(operands, TYPES)


def run(params: Elementwise, x: Array) -> tuple[Array, ...]:  # noqa: ARG001
    """Run SIN: T[S, *shape] -> T[S, *shape]."""
    return (transcendental.sin(x.astype(np.float32)).astype(x.dtype),)

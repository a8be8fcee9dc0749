"""ROUND: x rounded to a whole number, ties to even; what rounds up to 0 is +0. Equal to TFLite bit for bit.

TFLite has it in its optimised set only. Source: TFLite kernels/round.cc, internal/reference/round.h.
"""

from __future__ import annotations

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import Elementwise, lower_unary
from tflq.interpreter.numerics.bfloat16 import narrow, numbers

TYPES = (DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16)


def lower(node: Node, operands: Operands) -> Elementwise:  # noqa: ARG001
    """Check the types; errors as `lower_unary`."""
    return lower_unary(operands, TYPES)


def run(params: Elementwise, x: Array) -> tuple[Array, ...]:
    """Run ROUND: T[S, *shape] -> T[S, *shape]."""
    value = numbers(params.dtype, x)
    rounded = np.asarray(np.rint(value))
    rounded[(rounded == 0) & np.less(value, 0)] = 0
    return (narrow(rounded) if params.dtype is DType.BFLOAT16 else rounded,)

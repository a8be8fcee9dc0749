"""FLOOR: the largest whole number that is not above x. Equal to TFLite bit for bit.

Source: TFLite kernels/floor.cc.
"""

from __future__ import annotations

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import Elementwise, lower_unary
from tflq.interpreter.numerics.bfloat16 import by_number

TYPES = (DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16)


def lower(node: Node, operands: Operands) -> Elementwise:  # noqa: ARG001
    """Check the types; errors as `lower_unary`."""
    return lower_unary(operands, TYPES)


def run(params: Elementwise, x: Array) -> tuple[Array, ...]:
    """Run FLOOR: T[S, *shape] -> T[S, *shape]."""
    return (by_number(params.dtype, x, np.floor),)

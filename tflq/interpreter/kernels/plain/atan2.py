"""ATAN2: the angle of the point (x, y), y the first input, computed in float64; shapes are equal.

Within 1 unit in the last place of TFLite's (atan2f of the host). Source: TFLite kernels/atan2.cc.
"""

from __future__ import annotations

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import Elementwise, lower_binary
from tflq.interpreter.numerics.bfloat16 import narrow, numbers

TYPES = (DType.FLOAT32, DType.FLOAT64, DType.FLOAT16, DType.BFLOAT16)


def lower(node: Node, operands: Operands) -> Elementwise:  # noqa: ARG001
    """Check the operands.

    Raises:
        UnsupportedError: other or unequal types.
        GraphError: unequal shapes, which TFLite does not broadcast here.
    """
    require_equal_shapes(operands)
    return lower_binary(operands, TYPES)


def run(params: Elementwise, y: Array, x: Array) -> tuple[Array, ...]:
    """Run ATAN2: T[S or 1, *shape] twice -> T[S, *shape]."""
    dtype = params.dtype
    angle = np.arctan2(*(numbers(dtype, array).astype(np.float64) for array in (y, x)))
    if dtype is DType.BFLOAT16:
        return (narrow(angle),)
    return (np.asarray(angle.astype(np.float32 if dtype is DType.FLOAT16 else y.dtype).astype(y.dtype)),)


def require_equal_shapes(operands: Operands) -> None:
    """Check that both inputs have the same shape.

    Raises:
        GraphError: they do not.
    """
    first, second = operands.input(0), operands.input(1)
    if first.shape != second.shape:
        raise GraphError(f"shapes {first.shape} and {second.shape} differ; the operator does not broadcast")

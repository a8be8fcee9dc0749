"""MAXIMUM: x > y ? x : y, elementwise with broadcasting.

Codes are compared as they are: scales and zero points do not enter, even where they differ. A comparison with NaN is
false, so y is taken; so it is of 0 and -0. Source: TFLite kernels/maximum_minimum.cc.
"""

from __future__ import annotations

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import Elementwise, lower_binary
from tflq.interpreter.numerics.bfloat16 import numbers
from tflq.interpreter.samples import align

TYPES = (
    DType.FLOAT32,
    DType.FLOAT16,
    DType.BFLOAT16,
    DType.UINT8,
    DType.INT8,
    DType.INT16,
    DType.INT32,
    DType.INT64,
)


def lower(node: Node, operands: Operands) -> Elementwise:  # noqa: ARG001
    """Check the operands; errors as `lower_binary`."""
    return lower_binary(operands, TYPES)


def run(params: Elementwise, first: Array, second: Array) -> tuple[Array, ...]:
    """Run MAXIMUM: T[S or 1, *shape] twice, shapes broadcast -> T[S, *shape]."""
    x, y = align(first, second)
    if params.dtype.is_integer:
        return (np.asarray(np.maximum(x, y)),)
    taken = np.greater(numbers(params.dtype, x), numbers(params.dtype, y))
    return (np.where(taken, x, y),)

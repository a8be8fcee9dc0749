"""FLOOR_DIV: floor(x / y), divided in float64, elementwise with broadcasting.

Source: TFLite kernels/floor_div.cc, internal/reference/floor_div.h.
"""

from __future__ import annotations

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import Elementwise, lower_binary
from tflq.interpreter.numerics.fixed_point import float_to_int32
from tflq.interpreter.samples import align

TYPES = (DType.FLOAT32, DType.INT8, DType.INT16, DType.INT32)


def lower(node: Node, operands: Operands) -> Elementwise:  # noqa: ARG001
    """Check the operands; errors as `lower_binary`."""
    return lower_binary(operands, TYPES)


def run(params: Elementwise, first: Array, second: Array) -> tuple[Array, ...]:
    """Run FLOOR_DIV: T[S or 1, *shape] twice, shapes broadcast -> T[S, *shape].

    Raises:
        UnsupportedError: a divisor is 0.
    """
    x, y = align(first, second)
    if np.any(np.equal(y, 0)):
        raise UnsupportedError("floor_div: a divisor is 0; TFLite refuses it")
    with np.errstate(all="ignore"):
        quotient = np.floor(x.astype(np.float64) / y.astype(np.float64))
        if params.dtype is DType.FLOAT32:
            return (np.asarray(quotient.astype(np.float32)),)
    return (float_to_int32(quotient).astype(x.dtype),)

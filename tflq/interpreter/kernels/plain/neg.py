"""NEG: -x. Codes are negated as they are, scales and zero points do not enter; the lowest integer stays.

Source: TFLite kernels/neg.cc.
"""

from __future__ import annotations

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import Elementwise, lower_unary

TYPES = (
    DType.FLOAT32,
    DType.FLOAT16,
    DType.BFLOAT16,
    DType.INT8,
    DType.INT16,
    DType.INT32,
    DType.INT64,
)


def lower(node: Node, operands: Operands) -> Elementwise:  # noqa: ARG001
    """Check the types; errors as `lower_unary`."""
    return lower_unary(operands, TYPES)


def run(params: Elementwise, x: Array) -> tuple[Array, ...]:
    """Run NEG: T[S, *shape] -> T[S, *shape]."""
    if params.dtype is DType.BFLOAT16:
        return (np.asarray(np.bitwise_xor(x, np.uint16(0x8000))),)
    return (np.asarray(np.negative(x)),)

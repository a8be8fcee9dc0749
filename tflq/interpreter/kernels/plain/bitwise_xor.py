"""BITWISE_XOR: x xor y, bit by bit, elementwise with broadcasting.

Source: TFLite kernels/bitwise_xor.cc.
"""

from __future__ import annotations

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import Elementwise, lower_binary
from tflq.interpreter.samples import align

TYPES = (DType.INT8, DType.UINT8, DType.INT16, DType.UINT16, DType.INT32, DType.UINT32)


def lower(node: Node, operands: Operands) -> Elementwise:  # noqa: ARG001
    """Check the operands; errors as `lower_binary`."""
    return lower_binary(operands, TYPES)


def run(params: Elementwise, first: Array, second: Array) -> tuple[Array, ...]:  # noqa: ARG001
    """Run BITWISE_XOR: T[S or 1, *shape] twice, shapes broadcast -> T[S, *shape]."""
    return (np.asarray(np.bitwise_xor(*align(first, second))),)

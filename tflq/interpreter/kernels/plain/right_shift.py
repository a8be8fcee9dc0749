"""RIGHT_SHIFT: x >> y, elementwise with broadcasting; signed numbers keep their sign.

Counts are clamped to 0 .. width - 1.

Source: TFLite kernels/right_shift.cc.
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
    """Run RIGHT_SHIFT: T[S or 1, *shape] twice, shapes broadcast -> T[S, *shape]."""
    x, y = align(first, second)
    return (np.asarray(np.right_shift(x, np.clip(y, 0, 8 * x.itemsize - 1))),)

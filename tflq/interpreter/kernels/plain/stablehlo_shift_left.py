"""STABLEHLO_SHIFT_LEFT: x << y; shapes are equal. TFLite has it in its optimised set only.

int8 and int16 are widened to int32 first and cut after. Counts outside 0 .. 31 are undefined in C++; they count modulo
32 here, as on x86. Source: TFLite kernels/stablehlo_shift_left.cc.
"""

from __future__ import annotations

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import Elementwise
from tflq.interpreter.kernels.plain.stablehlo import lower_stablehlo


def lower(node: Node, operands: Operands) -> Elementwise:  # noqa: ARG001
    """Check the operands; errors as `lower_stablehlo`."""
    return lower_stablehlo(operands, (DType.INT8, DType.INT16, DType.INT32))


def run(params: Elementwise, first: Array, second: Array) -> tuple[Array, ...]:  # noqa: ARG001
    """Run STABLEHLO_SHIFT_LEFT: T[S or 1, *shape] twice -> T[S, *shape]."""
    count = second.astype(np.int32) & 31
    return (np.left_shift(first.astype(np.int32), count).astype(first.dtype),)

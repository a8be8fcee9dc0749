"""STABLEHLO_AND: x and y, bit by bit; shapes are equal. TFLite has it in its optimised set only.

Source: TFLite kernels/stablehlo_and.cc, stablehlo_elementwise.h.
"""

from __future__ import annotations

import numpy as np

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import Elementwise
from tflq.interpreter.kernels.plain.stablehlo import INTEGERS, lower_stablehlo


def lower(node: Node, operands: Operands) -> Elementwise:  # noqa: ARG001
    """Check the operands; errors as `lower_stablehlo`."""
    return lower_stablehlo(operands, INTEGERS)


def run(params: Elementwise, first: Array, second: Array) -> tuple[Array, ...]:  # noqa: ARG001
    """Run STABLEHLO_AND: T[S or 1, *shape] twice -> T[S, *shape]."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return (np.asarray(np.bitwise_and(first, second)),)

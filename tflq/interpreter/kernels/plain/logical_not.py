"""LOGICAL_NOT: not x, elementwise. Source: TFLite kernels/elementwise.cc."""

from __future__ import annotations

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import Elementwise, lower_unary


def lower(node: Node, operands: Operands) -> Elementwise:  # noqa: ARG001
    """Check the types; errors as `lower_unary`."""
    return lower_unary(operands, (DType.BOOL,))


def run(params: Elementwise, x: Array) -> tuple[Array, ...]:  # noqa: ARG001
    """Run LOGICAL_NOT: bool[S, *shape] -> bool[S, *shape]."""
    return (np.asarray(np.logical_not(x)),)

"""CEIL: the smallest whole number that is not below x. Equal to TFLite bit for bit.

Source: TFLite kernels/ceil.cc.
"""

from __future__ import annotations

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import Elementwise, lower_unary

TYPES = (DType.FLOAT32,)


def lower(node: Node, operands: Operands) -> Elementwise:  # noqa: ARG001
    """Check the types; errors as `lower_unary`."""
    return lower_unary(operands, TYPES)


def run(params: Elementwise, x: Array) -> tuple[Array, ...]:  # noqa: ARG001
    """Run CEIL: T[S, *shape] -> T[S, *shape]."""
    return (np.asarray(np.ceil(x)),)

"""SQRT of float32: sqrt(x), rounded correctly, NaN below 0. Equal to TFLite bit for bit.

Source: TFLite kernels/elementwise.cc.
"""

from __future__ import annotations

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import Elementwise, lower_unary


def lower(node: Node, operands: Operands) -> Elementwise:  # noqa: ARG001
    """Check the types; errors as `lower_unary`."""
    return lower_unary(operands, (DType.FLOAT32,))


def run(params: Elementwise, x: Array) -> tuple[Array, ...]:  # noqa: ARG001
    """Run SQRT: float32[S, *shape] -> float32[S, *shape]."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return (np.asarray(np.sqrt(x)),)

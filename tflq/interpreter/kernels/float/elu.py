"""ELU of float32: x where x >= 0, else e^x - 1; within 1 unit in the last place of TFLite's.

Source: TFLite kernels/internal/optimized/optimized_ops.h (Elu, on Eigen); there is no reference kernel.
"""

from __future__ import annotations

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import Elementwise, lower_unary
from tflq.interpreter.numerics import transcendental


def lower(node: Node, operands: Operands) -> Elementwise:  # noqa: ARG001
    """Check the types; errors as `lower_unary`."""
    return lower_unary(operands, (DType.FLOAT32,))


def run(params: Elementwise, x: Array) -> tuple[Array, ...]:  # noqa: ARG001
    """Run ELU: float32[S, *shape] -> float32[S, *shape]."""
    value = x.astype(np.float32)
    return (np.where(value < 0, transcendental.expm1(value), value),)

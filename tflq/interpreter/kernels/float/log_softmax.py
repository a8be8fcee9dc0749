"""LOG_SOFTMAX of float32 over the last axis: f32(f32(x - max) - ln(sum of exp(x - max) in order)).

exp and ln are computed in float64 and rounded once; within 2 units in the last place of TFLite's.
Source: TFLite kernels/internal/reference/log_softmax.h.
"""

from __future__ import annotations

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import Elementwise, lower_unary
from tflq.interpreter.numerics import transcendental


def lower(node: Node, operands: Operands) -> Elementwise:  # noqa: ARG001
    """Check the operands.

    Raises:
        UnsupportedError: another type.
        GraphError: a scalar.
    """
    if not operands.input(0).shape:
        raise GraphError("the input is a scalar; log_softmax takes one axis or more")
    return lower_unary(operands, (DType.FLOAT32,))


def run(params: Elementwise, x: Array) -> tuple[Array, ...]:  # noqa: ARG001
    """Run LOG_SOFTMAX: float32[S, ..., C] -> float32[S, ..., C]."""
    if x.size == 0:
        return (x,)
    with np.errstate(all="ignore"):
        below = np.asarray(np.subtract(x, np.max(x, -1, keepdims=True)), np.float32)
        total = np.add.accumulate(transcendental.exp(below), -1)[..., -1:]
        return (np.asarray(below - transcendental.log(total)),)

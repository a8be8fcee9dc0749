"""L2_NORMALIZATION of float32 over the last axis: x / max(sqrt(sum of x^2 in order), 1e-6). Equal to TFLite.

Source: TFLite kernels/internal/reference/l2normalization.h.
"""

from __future__ import annotations

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import Elementwise, lower_unary
from tflq.interpreter.kernels.tflite.l2_normalization import require_normalizable

EPSILON = np.float32(1e-6)


def lower(node: Node, operands: Operands) -> Elementwise:
    """Check the operands.

    Raises:
        UnsupportedError: another type, or a fused activation.
        GraphError: a scalar.
    """
    require_normalizable(node, operands)
    return lower_unary(operands, (DType.FLOAT32,))


def run(params: Elementwise, x: Array) -> tuple[Array, ...]:  # noqa: ARG001
    """Run L2_NORMALIZATION: float32[S, ..., C] -> float32[S, ..., C]."""
    with np.errstate(all="ignore"):
        squares = np.multiply(x, x)
        total = np.add.accumulate(squares, -1)[..., -1:] if x.shape[-1] else np.zeros((*x.shape[:-1], 1), np.float32)
        norm = np.sqrt(total)
        return (np.asarray(np.divide(x, np.where(np.less(norm, EPSILON), EPSILON, norm))),)

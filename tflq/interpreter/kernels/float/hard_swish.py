"""HARD_SWISH of float32: f32(f32(x * min(6, max(0, f32(x + 3)))) / 6). Equal to TFLite bit for bit.

Source: TFLite kernels/internal/reference/hard_swish.h.
"""

from __future__ import annotations

import numpy as np

from tflq.graph import Array
from tflq.interpreter.kernels.float.unary import Unary
from tflq.interpreter.kernels.float.unary import lower_unary as lower

__all__ = ["lower", "run"]


def run(params: Unary, x: Array) -> tuple[Array, ...]:  # noqa: ARG001
    """Run it: float32[S, *shape] -> float32[S, *shape]."""
    with np.errstate(over="ignore", invalid="ignore"):
        shifted = x + np.float32(3)
        bounded = np.where(np.greater(shifted, 0), np.where(np.less(shifted, 6), shifted, np.float32(6)), np.float32(0))
        return (np.asarray(x * bounded / np.float32(6)),)

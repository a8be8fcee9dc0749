"""RELU6 of float32: min(max(x, 0), 6); -0.0 and NaN stay. Equal to TFLite bit for bit.

Source: TFLite kernels/internal/reference/reference_ops.h (Relu6).
"""

from __future__ import annotations

import numpy as np

from tflq.graph import Array
from tflq.interpreter.kernels.float.unary import Unary
from tflq.interpreter.kernels.float.unary import lower_unary as lower
from tflq.interpreter.kernels.plain.binary import clamp_in_place

__all__ = ["lower", "run"]


def run(params: Unary, x: Array) -> tuple[Array, ...]:  # noqa: ARG001
    """Run it: float32[S, *shape] -> float32[S, *shape]."""
    return (clamp_in_place(x.copy(), np.float32(0), np.float32(6)),)

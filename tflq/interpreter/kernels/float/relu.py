"""RELU of float32: 0 where x < 0, else x; -0.0 and NaN stay. Equal to TFLite bit for bit.

Source: TFLite kernels/activations.cc (ReluEval).
"""

from __future__ import annotations

import numpy as np

from tflq.graph import Array
from tflq.interpreter.kernels.float.unary import Unary
from tflq.interpreter.kernels.float.unary import lower_unary as lower

__all__ = ["lower", "run"]


def run(params: Unary, x: Array) -> tuple[Array, ...]:  # noqa: ARG001
    """Run it: float32[S, *shape] -> float32[S, *shape]."""
    return (np.where(np.less(x, 0), np.float32(0), x),)

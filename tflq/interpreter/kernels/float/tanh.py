"""TANH of float32, computed in float64 and rounded once.

TFLite's is the host's tanhf, for which glibc states two units in the last place (7 % of its results are off by one): so
far apart the two are at most.

Source: TFLite kernels/activations.cc (TanhEval).
"""

from __future__ import annotations

import numpy as np

from tflq.graph import Array
from tflq.interpreter.kernels.float.unary import Unary
from tflq.interpreter.kernels.float.unary import lower_unary as lower

__all__ = ["lower", "run"]


def run(integers: Unary, x: Array) -> tuple[Array, ...]:  # noqa: ARG001
    """Run it: float32[S, *shape] -> float32[S, *shape]."""
    return (np.tanh(x.astype(np.float64)).astype(np.float32),)

"""TANH of float32 and float16, computed in float64 and rounded once to float32, of which float16 is rounded again.

TFLite's is the host's tanhf, for which glibc states two units in the last place (7 % of its results are off by one): so
far apart the two are at most.

Source: TFLite kernels/activations.cc (TanhEval).
"""

from __future__ import annotations

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels import transcendental
from tflq.interpreter.kernels.plain.elementwise import Elementwise, lower_unary

TYPES = (DType.FLOAT32, DType.FLOAT16)


def lower(node: Node, operands: Operands) -> Elementwise:  # noqa: ARG001
    """Check the types; errors as `lower_unary`."""
    return lower_unary(operands, TYPES)


def run(integers: Elementwise, x: Array) -> tuple[Array, ...]:  # noqa: ARG001
    """Run it: T[S, *shape] -> T[S, *shape]."""
    return (transcendental.tanh(x.astype(np.float32)).astype(x.dtype, copy=False),)

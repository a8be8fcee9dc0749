"""SUM of float32 over some axes: a float32 sum in the order of the elements. Equal to TFLite bit for bit.

(TFLite splits a sum over all axes among its threads from 1024 elements a thread on; this is the result of one.)
Source: TFLite kernels/reduce.cc, internal/reference/reduce.h (ReduceGeneric).
"""

from __future__ import annotations

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.reduction import PlainReduction, lower_plain_reduction, run_fold


def lower(node: Node, operands: Operands) -> PlainReduction:
    """Decide the axes; errors as `lower_plain_reduction`."""
    return lower_plain_reduction(node, operands, (DType.FLOAT32,))


def run(params: PlainReduction, x: Array, *_axes: Array) -> tuple[Array, ...]:
    """Run SUM: float32[S, *shape] -> float32[S, *shape without the axes, or with 1 there]."""
    return run_fold(params, x, np.add)

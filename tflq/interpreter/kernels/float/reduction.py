"""SUM, MEAN and REDUCE_PROD of float32 over some axes, in the order of the elements. Equal to TFLite bit for bit.

float32[S, *shape] -> float32[S, *shape without the axes, or with 1 there]. (TFLite splits a sum or product over all
axes among its threads from 1024 elements a thread on; this is the result of one.)

MEAN: a float32 sum in the order of the elements, then one division. Source: TFLite kernels/internal/reference/reduce.h
(Mean).
"""

from __future__ import annotations

from functools import partial

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.reduction import lower_plain_reduction, rows_of, run_fold
from tflq.interpreter.operands.checks import (
    Reduction,
    lower_reduction,
    require_same_type,
    require_type,
    shape_of_result,
)
from tflq.interpreter.registry import Kernel


def lower_mean(node: Node, operands: Operands) -> Reduction:
    """Decide the axes.

    Raises:
        UnsupportedError: another type.
        GraphError: an axis out of range, or computed at run time.
    """
    require_type(operands.input(0), (DType.FLOAT32,))
    require_same_type(operands.input(0), operands.output())
    return lower_reduction(node, operands)


def run_mean(params: Reduction, x: Array, *_axes: Array) -> tuple[Array, ...]:
    """Run MEAN: float32[S, *shape] -> float32[S, *shape without the axes, or with 1 there]."""
    shape = shape_of_result(params, x)
    if params.count == 0:
        return (np.full(shape, np.nan, np.float32),)
    rows = rows_of(params, x)
    total = np.zeros(rows.shape[1], np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for row in rows:
            np.add(total, row, out=total)
    return ((total / np.float32(params.count)).reshape(shape),)


def _fold(summary: str, operation: np.ufunc) -> Kernel:
    return Kernel(
        partial(lower_plain_reduction, allowed=(DType.FLOAT32,)),
        partial(run_fold, operation=operation),
        summary,
        "TFLite kernels/reduce.cc, internal/reference/reduce.h (ReduceGeneric)",
    )


KERNELS = {
    "mean": Kernel(lower_mean, run_mean),
    "sum": _fold("a float32 sum in the order of the elements", np.add),
    "reduce_prod": _fold("a float32 product in the order of the elements", np.multiply),
}

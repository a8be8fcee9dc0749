"""MEAN of float32 over some axes: a float32 sum in the order of the elements, then one division.

Equal to TFLite bit for bit, because the order of the sum is. Source: TFLite kernels/internal/reference/reduce.h (Mean).
"""

from __future__ import annotations

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import require_same_type, require_type
from tflq.interpreter.operands.reduction_axes import Reduction, lower_reduction, shape_of_result


def lower(node: Node, operands: Operands) -> Reduction:
    """Decide the axes.

    Raises:
        UnsupportedError: another type.
        GraphError: an axis out of range, or computed at run time.
    """
    require_type(operands.input(0), (DType.FLOAT32,))
    require_same_type(operands.input(0), operands.output())
    return lower_reduction(node, operands)


def run(params: Reduction, x: Array, *_axes: Array) -> tuple[Array, ...]:
    """Run MEAN: float32[S, *shape] -> float32[S, *shape without the axes, or with 1 there]."""
    shape = shape_of_result(params, x)
    if params.count == 0:
        return (np.full(shape, np.nan, np.float32),)
    reduced = [axis + 1 for axis in params.axes]
    kept = [axis for axis in range(x.ndim) if axis not in reduced]
    rows = x.transpose(*reduced, *kept).reshape(params.count, -1)
    total = np.zeros(rows.shape[1], np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for row in rows:
            total += row
    return ((total / np.float32(params.count)).reshape(shape),)

"""WHERE: the coordinates of all elements that are not zero, in the order of the elements.

Source: TFLite kernels/where.cc and internal/reference/reference_ops.h (SelectTrueCoords).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import require_type

PER_SAMPLE = True
TYPES = (DType.BOOL, DType.FLOAT32, DType.INT64, DType.INT32, DType.INT8, DType.UINT8, DType.UINT32)


@dataclass(frozen=True)
class Where:
    """Number of the model's own axes."""

    rank: int


def lower(node: Node, operands: Operands) -> Where:  # noqa: ARG001
    """Count the axes.

    Raises:
        GraphError: a scalar condition.
        UnsupportedError: a type that TFLite does not take, or an output that is not int64.
    """
    require_type(operands.input(0), TYPES)
    require_type(operands.output(), (DType.INT64,))
    if not operands.input(0).shape:
        raise GraphError(f"'{operands.input(0).name}' is a scalar; a condition has one axis at least")
    return Where(len(operands.input(0).shape))


def run(params: Where, x: Array) -> tuple[Array, ...]:
    """Run WHERE: T[1, *shape] -> int64[1, found, rank]."""
    return (np.argwhere(x[0]).astype(np.int64).reshape(1, -1, params.rank),)

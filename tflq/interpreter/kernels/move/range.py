"""RANGE: start, start + delta, ... below limit (above it where delta is negative), each from the one before.

Source: TFLite kernels/range.cc. The number of elements is ceil(|limit - start| / |delta|), for floats in float32.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import require_result, require_same_type, require_type


@dataclass(frozen=True, eq=False)
class Range:
    """The numbers: T[n]."""

    values: Array


def lower(node: Node, operands: Operands) -> Range:  # noqa: ARG001
    """Compute the numbers.

    Raises:
        GraphError: operands that are no scalars or computed at run time, a delta of 0 or away from the limit.
        UnsupportedError: other types than int32, int64 and float32.
    """
    tensors = [operands.input(i) for i in range(3)]
    dtype = require_type(tensors[0], (DType.INT32, DType.INT64, DType.FLOAT32))
    require_same_type(*tensors, operands.output())
    if any(tensor.shape for tensor in tensors):
        raise GraphError("start, limit and delta are scalars; one has another shape")
    start, limit, delta = (operands.constant(i).reshape(())[()] for i in range(3))
    if not ((start >= limit and delta < 0) or (start <= limit and delta > 0)):  # type: ignore[operator]
        raise GraphError(
            f"start {start}, limit {limit} and delta {delta}: delta leads from start to limit, and is not 0"
        )
    if dtype is DType.FLOAT32:
        with np.errstate(all="ignore"):
            count = float(np.ceil(np.abs((limit - start) / delta)))  # type: ignore[operator]
        if not count <= np.iinfo(np.int32).max:
            raise GraphError(f"start {start}, limit {limit} and delta {delta} give {count} elements")
    else:
        count = -(-abs(int(limit) - int(start)) // abs(int(delta)))
    require_result((int(count),), dtype)
    steps = np.full(int(count), delta, dtype.storage)
    steps[:1] = start
    return Range(np.add.accumulate(steps, dtype=dtype.storage))


def run(params: Range, *_operands: Array) -> tuple[Array, ...]:
    """Run RANGE: -> T[1, n], shared by all samples."""
    return (params.values[None],)

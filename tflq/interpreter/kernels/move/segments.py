"""SEGMENT_SUM and UNSORTED_SEGMENT_*: rows that share a segment are combined, row after row, from an initial value.

A segment without rows contains that initial value: 0 of sums, 1 of products, the type's lowest value of MAX, its
highest of MIN. Rows with a negative id belong to none. The ids of SEGMENT_SUM count from 0 without gaps. Integers wrap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from tflq.errors import GraphError, InputError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import require_result, require_same_type, require_type
from tflq.interpreter.operands.movable import constant_number, constant_vector, equal_samples
from tflq.interpreter.registry import Kernel


@dataclass(frozen=True)
class Segments:
    """What is combined.

    Attributes:
        operation: "sum", "prod", "max" or "min".
        axes: number of leading axes that the segment ids have.
        count: number of segments.
    """

    operation: str
    axes: int
    count: int


def _lower_unsorted(node: Node, operands: Operands, operation: str) -> Segments:  # noqa: ARG001
    """Decide the segments of UNSORTED_SEGMENT_*.

    Raises:
        GraphError: ids with a shape that does not begin the input's, or a number of segments that is negative or
            computed at run time.
        UnsupportedError: other types than int32 and float32.
    """
    source, ids = operands.input(0), operands.input(1)
    require_type(source, (DType.INT32, DType.FLOAT32))
    require_type(ids, (DType.INT32,))
    require_same_type(source, operands.output())
    count = constant_number(operands, 2)
    if len(operands.input(2).shape) > 1 or count < 0:
        raise GraphError(f"the number of segments is {count}; a single number, 0 or more, is needed")
    if ids.shape != source.shape[: len(ids.shape)]:
        raise GraphError(f"segment ids of shape {ids.shape} do not begin the input's shape {source.shape}")
    require_result((count + 1, *source.shape[len(ids.shape) :]), source.dtype)
    return Segments(operation, len(ids.shape), count)


def _lower_sum(node: Node, operands: Operands) -> Segments:  # noqa: ARG001
    """Read the segments of SEGMENT_SUM.

    Raises:
        GraphError: ids that do not fit the rows, do not start at 0, leave gaps, or are computed at run time.
        UnsupportedError: other types than int32 and float32.
    """
    source = operands.input(0)
    require_type(source, (DType.INT32, DType.FLOAT32))
    require_same_type(source, operands.output())
    ids = constant_vector(operands, 1, (DType.INT32,))
    if not source.shape or len(ids) != source.shape[0]:
        raise GraphError(f"{len(ids)} segment ids do not fit an input of shape {source.shape}")
    if any(now - before not in (0, 1) for before, now in zip((0, *ids), ids, strict=False)) or (ids and ids[0]):
        raise GraphError("segment ids count from 0 in steps of 0 or 1; these do not")
    return Segments("sum", 1, ids[-1] + 1 if ids else 0)


def _run(params: Segments, x: Array, ids: Array, *_count: Array) -> tuple[Array, ...]:
    """Combine rows: T[S or 1, *ids, *rest], int32[S or 1, *ids] -> T[S, segments, *rest].

    Rows with a negative id are left out; a comparison with NaN is false, so NaN never replaces a value.

    Raises:
        InputError: an id that is not below the number of segments.
    """
    if ids.size and ids.max() >= params.count:
        raise InputError(f"a segment id is {ids.max()}; there are {params.count} segments: 0..{params.count - 1}")
    rest = x.shape[1 + params.axes :]
    rows, where = equal_samples(
        x.reshape(x.shape[0], -1, *rest), ids.reshape(ids.shape[0], int(np.prod(ids.shape[1:], dtype=np.int64)))
    )
    samples = rows.shape[0]
    result = np.full((samples, params.count + 1, *rest), _initial(params.operation, x.dtype), x.dtype)
    places = np.where(np.less(where, 0), params.count, where)  # one segment more, for rows that are left out
    sample = np.arange(samples)
    with np.errstate(all="ignore"):
        for row in range(rows.shape[1]):
            place = (sample, places[:, row])
            result[place] = _OPERATIONS[params.operation](result[place], rows[:, row])
    return (result[:, : params.count],)


_OPERATIONS: dict[str, Callable[[Array, Array], Array]] = {
    "sum": np.add,
    "prod": np.multiply,
    "max": lambda a, b: np.where(np.less(a, b), b, a),
    "min": lambda a, b: np.where(np.less(b, a), b, a),
}


def _initial(operation: str, dtype: np.dtype[np.generic]) -> float:
    if operation in ("sum", "prod"):
        return float(operation == "prod")
    limits = np.finfo(np.float32) if dtype.kind == "f" else np.iinfo(np.int32)
    return limits.min if operation == "max" else limits.max


def _unsorted_kernel(operation: str, what: str) -> Kernel:
    return Kernel(
        partial(_lower_unsorted, operation=operation),
        _run,
        f"the {what} of all rows that share a segment, in the order of the rows",
        "TFLite kernels/unsorted_segment.cc",
    )


KERNELS = {
    "segment_sum": Kernel(_lower_sum, _run,
        "sums of neighboring rows that share a segment",
        "TFLite kernels/segment_sum.cc; in TFLite's optimized set only, with the reference kernel's code"),
    "unsorted_segment_max": _unsorted_kernel("max", "largest elements"),
    "unsorted_segment_min": _unsorted_kernel("min", "smallest elements"),
    "unsorted_segment_prod": _unsorted_kernel("prod", "products"),
    "unsorted_segment_sum": _unsorted_kernel("sum", "sums"),
}  # fmt: skip

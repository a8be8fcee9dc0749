"""SEGMENT_SUM: sums of neighbouring rows that share a segment; the ids in input 1 count from 0 without gaps.

Source: TFLite kernels/segment_sum.cc and internal/reference/reference_ops.h (SegmentSum). Only TFLite's optimised set
has the operator; the kernel is the same.
"""

from __future__ import annotations

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.move.segments import Segments, run_segments
from tflq.interpreter.operands.checks import require_same_type, require_type
from tflq.interpreter.operands.movable import constant_vector


def lower(node: Node, operands: Operands) -> Segments:  # noqa: ARG001
    """Read the segments.

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


def run(params: Segments, x: Array, ids: Array) -> tuple[Array, ...]:
    """Run SEGMENT_SUM: T[S or 1, rows, *rest], int32[1, rows] -> T[S, segments, *rest]; integers wrap."""
    return (run_segments(params, x, ids),)

"""UNSORTED_SEGMENT_MIN: the smallest elements of all rows that share a segment, in the order of the rows.

A segment without rows holds the type's largest value; rows with a negative id belong to none.

Source: TFLite kernels/unsorted_segment.cc.
"""

from __future__ import annotations

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.move.segments import Segments, lower_unsorted, run_segments


def lower(node: Node, operands: Operands) -> Segments:
    """Decide the segments.

    Raises:
        GraphError: ids whose shape does not begin the input's, or a number of segments that is negative or computed at
            run time.
        UnsupportedError: other types than int32 and float32.
    """
    return lower_unsorted("min", operands, node)


def run(params: Segments, x: Array, ids: Array, *_count: Array) -> tuple[Array, ...]:
    """Run UNSORTED_SEGMENT_MIN: T[S or 1, *ids, *rest], int32[S or 1, *ids] -> T[S, segments, *rest].

    Raises:
        InputError: an id that is not below the number of segments.
    """
    return (run_segments(params, x, ids),)

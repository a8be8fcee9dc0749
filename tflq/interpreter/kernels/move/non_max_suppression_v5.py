"""NON_MAX_SUPPRESSION_V5: the best boxes, scores lowered by overlap with better ones, their scores and their number.

exp is that of the host's mathematical library, rounded to float32.

Source: TFLite kernels/non_max_suppression.cc.
"""

from __future__ import annotations

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.move.suppression import Suppression, lower_suppression, run_suppression


def lower(node: Node, operands: Operands) -> Suppression:  # noqa: ARG001
    """Decide the length of the lists.

    Raises:
        GraphError: shapes that do not fit, a negative length or one computed at run time.
        UnsupportedError: other types than float32.
    """
    return lower_suppression(operands, (3, 4, 5))


def run(
    params: Suppression,
    boxes: Array,
    scores: Array,
    _size: Array | None,
    overlap: Array,
    threshold: Array,
    sigma: Array,
) -> tuple[Array, ...]:
    """Run NON_MAX_SUPPRESSION_V5: ... -> int32[S, size], float32[S, size], int32[S].

    Raises:
        InputError: a negative sigma.
    """
    return run_suppression(params, boxes, scores, overlap, threshold, sigma)

"""NON_MAX_SUPPRESSION_V4: the best boxes that do not overlap, and their number.

Source: TFLite kernels/non_max_suppression.cc.
"""

from __future__ import annotations

import numpy as np

from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.move.suppression import Suppression, lower_suppression, run_suppression


def lower(node: Node, operands: Operands) -> Suppression:  # noqa: ARG001
    """Decide the length of the list.

    Raises:
        GraphError: shapes that do not fit, a negative length or one computed at run time.
        UnsupportedError: other types than float32.
    """
    return lower_suppression(operands, (3, 4))


def run(
    params: Suppression, boxes: Array, scores: Array, _size: Array | None, overlap: Array, threshold: Array
) -> tuple[Array, ...]:
    """Run NON_MAX_SUPPRESSION_V4: float32[S or 1, n, 4], float32[S or 1, n] -> int32[S, size], int32[S]."""
    indices, _, count = run_suppression(params, boxes, scores, overlap, threshold, np.zeros(1, np.float32))
    return indices, count

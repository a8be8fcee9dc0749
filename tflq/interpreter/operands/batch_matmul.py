"""Operands of BATCH_MATMUL, the same in every arithmetic. Source: TFLite kernels/batch_matmul.cc (Prepare)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.operands.result_size import require_result
from tflq.interpreter.samples import align

MOST_AXES = 5


@dataclass(frozen=True, eq=False)
class Adjoints:
    """Which operands are transposed.

    Attributes:
        adj_x: whether x is.
        adj_y: whether y is.
    """

    adj_x: bool
    adj_y: bool

    def factors(self, x: Array, y: Array) -> tuple[Array, Array]:
        """Return both operands as [S or 1, ..., A, K] and [S or 1, ..., K, B], of equal rank."""
        left = np.swapaxes(x, -1, -2) if self.adj_x else x
        right = np.swapaxes(y, -1, -2) if self.adj_y else y
        first, second = align(left, right)
        return first, second


def require_product(node: Node, operands: Operands) -> tuple[bool, bool, int]:
    """Check the shapes [..., A, K] and [..., K, B]; return adj_x, adj_y and K.

    Raises:
        GraphError: they do not multiply, or have fewer than 2 axes or more than 5.
    """
    x, y = operands.input(0).shape, operands.input(1).shape
    adj_x, adj_y = (node.attributes.boolean(name, False) for name in ("adj_x", "adj_y"))
    if not 2 <= min(len(x), len(y)) <= max(len(x), len(y)) <= MOST_AXES:
        raise GraphError(f"shapes {x} and {y}; batch_matmul takes 2 to {MOST_AXES} axes")
    depth = x[-2] if adj_x else x[-1]
    try:
        batches = np.broadcast_shapes(x[:-2], y[:-2])
        fits = depth == (y[-1] if adj_y else y[-2])
    except ValueError:
        batches, fits = (), False
    if not fits:
        raise GraphError(f"shapes {x} and {y} do not multiply (adj_x {adj_x}, adj_y {adj_y})")
    require_result((*batches, x[-1 if adj_x else -2], y[-2 if adj_y else -1]), operands.output().dtype)
    return adj_x, adj_y, depth

"""ADD in GAP9's arithmetic (matrix_sum.py)."""

from __future__ import annotations

from tflq.graph import Node, Operands
from tflq.interpreter.kernels.gap9.matrix_sum import SumParams, lower_sum
from tflq.interpreter.kernels.gap9.matrix_sum import run_sum as run

__all__ = ["lower", "run"]


def lower(node: Node, operands: Operands) -> SumParams:  # noqa: ARG001
    """Decide the integers of ADD; raises as `lower_sum`."""
    return lower_sum(operands, 1)

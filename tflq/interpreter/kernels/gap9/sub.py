"""SUB in GAP9's arithmetic (matrix_sum.py): with the correct sign of the zero points, or the vendor's."""

from __future__ import annotations

from tflq.graph import Node, Operands
from tflq.interpreter.kernels.gap9.matrix_sum import SumParams, lower_sum
from tflq.interpreter.kernels.gap9.matrix_sum import run_sum as run

__all__ = ["lower", "run"]


def lower(node: Node, operands: Operands) -> SumParams:
    """Decide the integers of SUB; the attribute `sub` is "exact" (default) or "nntool". Raises as `lower_sum`."""
    return lower_sum(operands, -1, node.attributes.text("sub", "exact") == "nntool")

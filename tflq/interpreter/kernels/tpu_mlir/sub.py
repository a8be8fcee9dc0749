"""SUB (sums.py)."""

from __future__ import annotations

from tflq.graph import Node, Operands
from tflq.interpreter.kernels.tpu_mlir.sums import SumParams, lower_sum
from tflq.interpreter.kernels.tpu_mlir.sums import run_sum as run

__all__ = ["lower", "run"]


def lower(node: Node, operands: Operands) -> SumParams:
    """Decide the integers of SUB; raises as `lower_sum`."""
    return lower_sum(node, operands, -1)

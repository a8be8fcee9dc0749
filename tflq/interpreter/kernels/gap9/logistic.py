"""LOGISTIC in GAP9's arithmetic (sigmoid_tanh.py)."""

from __future__ import annotations

from tflq.graph import Node, Operands
from tflq.interpreter.kernels.gap9.sigmoid_tanh import CurveParams, lower_curve
from tflq.interpreter.kernels.gap9.sigmoid_tanh import run_sigmoid_tanh as run

__all__ = ["lower", "run"]


def lower(node: Node, operands: Operands) -> CurveParams:  # noqa: ARG001
    """Decide the integers of LOGISTIC; raises as `lower_curve`."""
    return lower_curve(operands, is_tanh=False)

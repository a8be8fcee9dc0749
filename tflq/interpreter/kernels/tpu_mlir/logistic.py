"""LOGISTIC: 1 / (1 + exp(-x)), as a table (curve.py)."""

from __future__ import annotations

import numpy as np

from tflq.graph import Node, Operands
from tflq.interpreter.kernels.tpu_mlir.curve import TableParams, lower_curve
from tflq.interpreter.kernels.tpu_mlir.curve import run_curve as run

__all__ = ["lower", "run"]


def lower(node: Node, operands: Operands) -> TableParams:  # noqa: ARG001
    """Return the table of LOGISTIC; raises as `lower_curve`."""
    return lower_curve(lambda x: 1.0 / (1.0 + np.exp(-x)), operands)

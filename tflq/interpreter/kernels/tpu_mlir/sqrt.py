"""SQRT: sqrt(x), 0 where x is negative, as a table (curve.py)."""

from __future__ import annotations

import numpy as np

from tflq.graph import Node, Operands
from tflq.interpreter.kernels.tpu_mlir.curve import TableParams, lower_curve
from tflq.interpreter.kernels.tpu_mlir.curve import run_curve as run

__all__ = ["lower", "run"]


def lower(node: Node, operands: Operands) -> TableParams:  # noqa: ARG001
    """Return the table of SQRT; raises as `lower_curve`."""
    return lower_curve(lambda x: np.sqrt(np.maximum(x, 0.0)), operands)

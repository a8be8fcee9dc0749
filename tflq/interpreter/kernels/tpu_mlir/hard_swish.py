"""HARD_SWISH: x * clip(x / 6 + 1 / 2, 0, 1), as a table (curve.py)."""

from __future__ import annotations

import numpy as np

from tflq.graph import Node, Operands
from tflq.interpreter.kernels.tpu_mlir.curve import TableParams, lower_curve
from tflq.interpreter.kernels.tpu_mlir.curve import run_curve as run

__all__ = ["lower", "run"]


def lower(node: Node, operands: Operands) -> TableParams:  # noqa: ARG001
    """Return the table of HARD_SWISH; raises as `lower_curve`."""
    return lower_curve(lambda x: x * np.clip(x / 6.0 + 0.5, 0.0, 1.0), operands)

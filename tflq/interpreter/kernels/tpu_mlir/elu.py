"""ELU: x where x >= 0, else exp(x) - 1, as a table (curve.py)."""

from __future__ import annotations

import numpy as np

from tflq.graph import Node, Operands
from tflq.interpreter.kernels.tpu_mlir.curve import TableParams, lower_curve
from tflq.interpreter.kernels.tpu_mlir.curve import run_curve as run

__all__ = ["lower", "run"]


def lower(node: Node, operands: Operands) -> TableParams:  # noqa: ARG001
    """Return the table of ELU; raises as `lower_curve`."""
    return lower_curve(lambda x: np.where(x < 0, np.expm1(np.minimum(x, 0.0)), x), operands)

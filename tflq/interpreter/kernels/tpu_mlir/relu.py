"""RELU that stays alone, symmetric: max(q, 0) in the input's scale, as a table (docs/tpu_mlir.md, 5)."""

from __future__ import annotations

import numpy as np

from tflq.graph import Node, Operands
from tflq.interpreter.kernels.tpu_mlir.curve import TableParams, table_of
from tflq.interpreter.kernels.tpu_mlir.curve import run_curve as run

__all__ = ["lower", "run"]


def lower(node: Node, operands: Operands) -> TableParams:  # noqa: ARG001
    """Return the table of RELU; raises as `table_of`."""
    return table_of(lambda codes: np.maximum(codes, 0), operands)

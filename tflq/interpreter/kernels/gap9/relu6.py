"""RELU6 in GAP9's arithmetic: as RELU, in a type that ends at 6."""

from __future__ import annotations

from tflq.interpreter.kernels.gap9.relu import lower, run

__all__ = ["lower", "run"]

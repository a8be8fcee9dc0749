"""The interpreter: engine, fixed-point primitives, exact accumulators, and kernels by arithmetic."""

from __future__ import annotations

from tflq.interpreter.execution.engine import Engine
from tflq.interpreter.execution.lowering import lower
from tflq.interpreter.execution.program import Listener

__all__ = ["Engine", "Listener", "lower"]

"""The interpreter: engine, fixed-point primitives, exact accumulators, and kernels by arithmetic."""

from __future__ import annotations

from tflq.interpreter.engine import Engine
from tflq.interpreter.lowering import lower
from tflq.interpreter.program import Listener

__all__ = ["Engine", "Listener", "lower"]

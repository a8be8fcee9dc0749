"""Arithmetic `float`."""

from __future__ import annotations

from tflq.interpreter.kernels.move import MOVERS
from tflq.interpreter.registry import Arithmetic

_HERE = "tflq.interpreter.kernels.float"
_OPERATORS: tuple[str, ...] = ()

ARITHMETIC = Arithmetic("float", {**MOVERS, **{operator: f"{_HERE}.{operator}" for operator in _OPERATORS}})

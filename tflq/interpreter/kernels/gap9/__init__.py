"""Arithmetic `gap9`."""

from __future__ import annotations

from tflq.interpreter.kernels.move import MOVERS
from tflq.interpreter.registry import Arithmetic

_HERE = "tflq.interpreter.kernels.gap9"
_OPERATORS: tuple[str, ...] = ()

ARITHMETIC = Arithmetic("gap9", {**MOVERS, **{operator: f"{_HERE}.{operator}" for operator in _OPERATORS}})

"""Arithmetic `tflite`."""

from __future__ import annotations

from tflq.interpreter.kernels.move import MOVERS
from tflq.interpreter.registry import Arithmetic

_HERE = "tflq.interpreter.kernels.tflite"
_OPERATORS: tuple[str, ...] = ()

ARITHMETIC = Arithmetic(
    "tflite", {**MOVERS, **{operator: f"{_HERE}.{operator}" for operator in _OPERATORS}}, floating="float"
)

"""Operators on plain numbers and raw codes: no scale enters, so they are the same in every arithmetic."""

from __future__ import annotations

_HERE = "tflq.interpreter.kernels.plain"
_OPERATORS: tuple[str, ...] = (
    "arg_max",
    "arg_min",
    "logical_and",
    "logical_not",
    "logical_or",
    "maximum",
    "minimum",
    "reduce_all",
    "reduce_any",
    "reduce_max",
    "reduce_min",
    "select",
    "select_v2",
)

PLAIN = {operator: f"{_HERE}.{operator}" for operator in _OPERATORS}

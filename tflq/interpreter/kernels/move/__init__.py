"""Operators that only move data: the same integers in every arithmetic."""

from __future__ import annotations

_HERE = "tflq.interpreter.kernels.move"
_OPERATORS: tuple[str, ...] = (
    "concatenation",
    "expand_dims",
    "pad",
    "padv2",
    "reshape",
    "split",
    "squeeze",
    "transpose",
)

MOVERS = {operator: f"{_HERE}.{operator}" for operator in _OPERATORS}

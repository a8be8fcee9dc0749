"""Arithmetic `nnie`: products of dequantised logarithmic codes, as in the hardware's simulation (docs/nnie.md)."""

from __future__ import annotations

from tflq.interpreter.kernels.move import MOVERS
from tflq.interpreter.registry import Arithmetic

_HERE = "tflq.interpreter.kernels.nnie"
_OPERATORS = (
    "add",
    "average_pool_2d",
    "concatenation",
    "conv_2d",
    "depthwise_conv_2d",
    "fully_connected",
    "mean",
    "mul",
)

ARITHMETIC = Arithmetic("nnie", {**MOVERS, **{operator: f"{_HERE}.{operator}" for operator in _OPERATORS}}, "float")

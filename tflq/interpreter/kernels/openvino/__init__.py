"""Arithmetic `openvino`: levels between linear operators, as the CPU plug-in executes them (docs/openvino.md, 2)."""

from __future__ import annotations

from tflq.interpreter.kernels.move import MOVERS
from tflq.interpreter.kernels.plain import PLAIN
from tflq.interpreter.registry import Arithmetic

_HERE = "tflq.interpreter.kernels.openvino"
_OPERATORS = (
    "add",
    "average_pool_2d",
    "concatenation",
    "conv_2d",
    "depthwise_conv_2d",
    "dequantize",
    "fake_quantize",
    "fully_connected",
    "max_pool_2d",
    "mean",
    "mul",
    "quantize",
    "sub",
)

_OWN = {operator: f"{_HERE}.{operator}" for operator in _OPERATORS}
ARITHMETIC = Arithmetic("openvino", {**MOVERS, **PLAIN, **_OWN}, "float")

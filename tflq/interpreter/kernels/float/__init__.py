"""Arithmetic `float`."""

from __future__ import annotations

from tflq.interpreter.kernels.move import MOVERS
from tflq.interpreter.registry import Arithmetic

_HERE = "tflq.interpreter.kernels.float"
_OPERATORS: tuple[str, ...] = (
    "add",
    "dequantize",
    "hard_swish",
    "leaky_relu",
    "logistic",
    "mean",
    "mul",
    "quantize",
    "relu",
    "relu6",
    "relu_0_to_1",
    "relu_n1_to_1",
    "softmax",
    "sub",
    "tanh",
)

ARITHMETIC = Arithmetic("float", {**MOVERS, **{operator: f"{_HERE}.{operator}" for operator in _OPERATORS}})

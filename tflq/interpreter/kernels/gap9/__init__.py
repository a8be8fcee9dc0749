"""Arithmetic `gap9`."""

from __future__ import annotations

from tflq.interpreter.kernels.move import MOVERS
from tflq.interpreter.registry import Arithmetic

_HERE = "tflq.interpreter.kernels.gap9"
_OPERATORS = (
    "add",
    "average_pool_2d",
    "conv_2d",
    "depthwise_conv_2d",
    "fully_connected",
    "hard_swish",
    "leaky_relu",
    "logistic",
    "max_pool_2d",
    "mean",
    "mul",
    "quantize",
    "reduce_max",
    "relu",
    "relu6",
    "softmax",
    "sub",
    "sum",
    "tanh",
    "unidirectional_sequence_lstm",
)

ARITHMETIC = Arithmetic("gap9", {**MOVERS, **{operator: f"{_HERE}.{operator}" for operator in _OPERATORS}})

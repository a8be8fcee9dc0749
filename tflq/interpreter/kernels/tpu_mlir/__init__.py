"""Arithmetic `tpu_mlir`: INT8 of BM1684X, symmetric and asymmetric, as TPU-MLIR computes it (docs/tpu_mlir.md)."""

from __future__ import annotations

from tflq.interpreter.kernels.move import MOVERS
from tflq.interpreter.registry import Arithmetic

_HERE = "tflq.interpreter.kernels.tpu_mlir"
_OPERATORS = (
    "add",
    "average_pool_2d",
    "conv_2d",
    "depthwise_conv_2d",
    "dequantize",
    "elu",
    "exp",
    "fully_connected",
    "hard_swish",
    "leaky_relu",
    "logistic",
    "max_pool_2d",
    "mean",
    "mul",
    "prelu",
    "quantize",
    "relu",
    "softmax",
    "sqrt",
    "sub",
    "tanh",
)

ARITHMETIC = Arithmetic("tpu_mlir", {**MOVERS, **{operator: f"{_HERE}.{operator}" for operator in _OPERATORS}})

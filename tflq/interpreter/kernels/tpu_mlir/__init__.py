"""Arithmetic `tpu_mlir`: INT8 of BM1684X, symmetric and asymmetric, as TPU-MLIR computes it (docs/tpu_mlir.md)."""

from __future__ import annotations

from tflq.interpreter.kernels.move import MOVERS
from tflq.interpreter.registry import Arithmetic, places

_OWN = places(
    __name__,
    "softmax",
    conversions="quantize dequantize",
    curves="elu exp hard_swish logistic relu sqrt tanh",
    elementwise="add mul sub",
    linear="conv_2d depthwise_conv_2d fully_connected",
    pooling="average_pool_2d max_pool_2d mean",
    slopes="leaky_relu prelu",
)
ARITHMETIC = Arithmetic("tpu_mlir", {**MOVERS, **_OWN})

"""Arithmetic `tpu_mlir`: INT8 of BM1684X, symmetric and asymmetric, as TPU-MLIR computes it (docs/tpu_mlir.md)."""

from __future__ import annotations

from tflq.interpreter.kernels.move import MOVERS
from tflq.interpreter.registry import Arithmetic, places

_OWN = places(
    __name__,
    conversions="quantize dequantize",
    activations="""
    abs ceil cos elu exp floor gelu hard_swish leaky_relu log logistic prelu relu relu6 relu_0_to_1 round sign silu sin
    softmax softsign sqrt tanh
    """,
    elementwise="add equal greater greater_equal less less_equal logical_and maximum minimum mul sub",
    linear="batch_matmul conv_2d depthwise_conv_2d fully_connected transpose_conv",
    scalars="div neg pow",
    pooling="average_pool_2d max_pool_2d mean reduce_max",
    reals="layer_normalization resize_bilinear",
)
ARITHMETIC = Arithmetic("tpu_mlir", {**MOVERS, **_OWN})

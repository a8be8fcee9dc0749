"""Arithmetic `openvino`: levels between linear operators, as the CPU plug-in executes them (docs/openvino.md, 2)."""

from __future__ import annotations

from tflq.interpreter.kernels.move import MOVERS
from tflq.interpreter.kernels.plain import PLAIN
from tflq.interpreter.registry import Arithmetic, places

_OWN = places(
    __name__,
    levels="quantize dequantize fake_quantize",
    linear="conv_2d depthwise_conv_2d fully_connected",
    pairs="add concatenation mul sub",
    pooling="average_pool_2d max_pool_2d mean",
)
ARITHMETIC = Arithmetic("openvino", {**MOVERS, **PLAIN, **_OWN}, "float")

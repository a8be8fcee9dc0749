"""Arithmetic `nnie`: products of dequantised logarithmic quantized values, as in the hardware's simulation.

Source: docs/nnie.md.
"""

from __future__ import annotations

from tflq.interpreter.kernels.move import MOVERS
from tflq.interpreter.registry import Arithmetic, places

_OWN = places(
    __name__,
    layers="""
    add average_pool_2d concatenation conv_2d depthwise_conv_2d div fully_connected hard_swish maximum mean minimum mul
    neg pow rsqrt sqrt square squared_difference sub sum transpose_conv
    """,
)
ARITHMETIC = Arithmetic("nnie", {**MOVERS, **_OWN}, "float")

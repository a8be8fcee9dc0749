"""Arithmetic `nnie`: products of dequantised logarithmic quantized values, as in the hardware's simulation.

Source: docs/nnie.md.
"""

from __future__ import annotations

from tflq.interpreter.kernels.move import MOVERS
from tflq.interpreter.registry import Arithmetic, places

_OWN = places(
    __name__,
    inputs="add average_pool_2d concatenation div hard_swish maximum mean minimum mul neg pow rsqrt sqrt square "
    "squared_difference sub sum",
    weighted="conv_2d depthwise_conv_2d fully_connected transpose_conv",
)
ARITHMETIC = Arithmetic("nnie", {**MOVERS, **_OWN}, "float")

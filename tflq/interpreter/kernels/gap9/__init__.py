"""Arithmetic `gap9`."""

from __future__ import annotations

from tflq.interpreter.kernels.move import MOVERS
from tflq.interpreter.registry import Arithmetic, places

_ALONE = """
    add hard_swish leaky_relu logistic mul quantize relu relu6 softmax sub tanh
    unidirectional_sequence_lstm
"""

_OWN = places(
    __name__,
    _ALONE,
    linear="conv_2d depthwise_conv_2d fully_connected",
    pooling="average_pool_2d max_pool_2d mean sum reduce_max",
)
ARITHMETIC = Arithmetic("gap9", {**MOVERS, **_OWN})

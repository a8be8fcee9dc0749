"""Arithmetic `gap9`."""

from __future__ import annotations

from tflq.interpreter.kernels.move import MOVERS
from tflq.interpreter.registry import Arithmetic, places

_ALONE = """
    add average_pool_2d hard_swish leaky_relu logistic max_pool_2d mean mul quantize reduce_max relu
    relu6 softmax sub sum tanh unidirectional_sequence_lstm
"""

_OWN = places(__name__, _ALONE, linear="conv_2d depthwise_conv_2d fully_connected")
ARITHMETIC = Arithmetic("gap9", {**MOVERS, **_OWN})

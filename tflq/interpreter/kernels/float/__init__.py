"""Arithmetic `float`."""

from __future__ import annotations

from tflq.interpreter.kernels import plain
from tflq.interpreter.kernels.move import MOVERS
from tflq.interpreter.kernels.plain import PLAIN
from tflq.interpreter.registry import Arithmetic, places

_OWN = places(
    __name__,
    "resize_bilinear svdf",
    convolution="conv_2d depthwise_conv_2d",
    lstm="bidirectional_sequence_lstm lstm unidirectional_sequence_lstm",
    products="batch_matmul fully_connected transpose_conv",
    pools="average_pool_2d l2_pool_2d max_pool_2d",
    rnn="bidirectional_sequence_rnn rnn unidirectional_sequence_rnn",
    softmax="l2_normalization log_softmax softmax",
    volumes="conv_3d conv_3d_transpose",
)
_OF_PLAIN_NUMBERS = places(
    plain.__name__,
    comparison="equal greater greater_equal less less_equal not_equal",
    pairs="add div mul prelu squared_difference sub",
    reduction="mean reduce_prod sum",
    unary="""
    abs dequantize elu exp gelu hard_swish leaky_relu log logistic quantize relu relu6 relu_0_to_1 relu_n1_to_1 rsqrt
    sqrt tanh
    """,
)
"""Where the numbers are quantized, other kernels run these."""

ARITHMETIC = Arithmetic("float", {**MOVERS, **PLAIN, **_OF_PLAIN_NUMBERS, **_OWN})

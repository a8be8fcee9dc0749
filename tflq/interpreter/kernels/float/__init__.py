"""Arithmetic `float`."""

from __future__ import annotations

from tflq.interpreter.kernels.move import MOVERS
from tflq.interpreter.kernels.plain import PLAIN
from tflq.interpreter.registry import Arithmetic, places

_OWN = places(
    __name__,
    "resize_bilinear svdf",
    convolution="conv_2d depthwise_conv_2d",
    lstm="bidirectional_sequence_lstm lstm unidirectional_sequence_lstm",
    pairs="add div mul prelu squared_difference sub",
    products="batch_matmul fully_connected transpose_conv",
    pools="average_pool_2d l2_pool_2d max_pool_2d",
    reduction="mean reduce_prod sum",
    rnn="bidirectional_sequence_rnn rnn unidirectional_sequence_rnn",
    softmax="l2_normalization log_softmax softmax",
    unary="""
    abs dequantize elu exp gelu hard_swish leaky_relu log logistic quantize relu relu6 relu_0_to_1 relu_n1_to_1 rsqrt
    sqrt tanh
    """,
    volumes="conv_3d conv_3d_transpose",
)
_COMPARISONS = places(
    "tflq.interpreter.kernels.plain", comparison="equal greater greater_equal less less_equal not_equal"
)

ARITHMETIC = Arithmetic("float", {**MOVERS, **PLAIN, **_COMPARISONS, **_OWN})

"""Arithmetic `float`."""

from __future__ import annotations

from tflq.interpreter.kernels.move import MOVERS
from tflq.interpreter.kernels.plain import PLAIN
from tflq.interpreter.registry import Arithmetic, places

_OWN = places(
    __name__,
    "batch_matmul fully_connected l2_normalization log_softmax resize_bilinear softmax svdf transpose_conv",
    convolution="conv_2d depthwise_conv_2d",
    lstm="bidirectional_sequence_lstm lstm unidirectional_sequence_lstm",
    pairs="add div mul prelu squared_difference sub",
    pools="average_pool_2d l2_pool_2d max_pool_2d",
    reals="dequantize quantize",
    reduction="mean reduce_prod sum",
    relu="hard_swish leaky_relu relu relu6 relu_0_to_1 relu_n1_to_1",
    rnn="bidirectional_sequence_rnn rnn unidirectional_sequence_rnn",
    unary="abs elu exp gelu log logistic rsqrt sqrt tanh",
    volumes="conv_3d conv_3d_transpose",
)
_COMPARISONS = places(
    "tflq.interpreter.kernels.plain", comparison="equal greater greater_equal less less_equal not_equal"
)

ARITHMETIC = Arithmetic("float", {**MOVERS, **PLAIN, **_COMPARISONS, **_OWN})

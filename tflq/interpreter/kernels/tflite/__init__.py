"""Arithmetic `tflite`."""

from __future__ import annotations

from tflq.interpreter.kernels import float as reals
from tflq.interpreter.kernels.move import MOVERS
from tflq.interpreter.kernels.plain import PLAIN
from tflq.interpreter.registry import Arithmetic, places

_OWN = places(
    __name__,
    """
    batch_matmul concatenation fully_connected l2_normalization resize_bilinear svdf
    transpose_conv
    """,
    activations="abs hard_swish relu relu6 relu_0_to_1 relu_n1_to_1",
    comparison="equal greater greater_equal less less_equal not_equal",
    convolution="conv_2d depthwise_conv_2d",
    hybrid_rnn="bidirectional_sequence_rnn rnn unidirectional_sequence_rnn",
    lstm="bidirectional_sequence_lstm lstm unidirectional_sequence_lstm",
    pools="average_pool_2d max_pool_2d",
    mul="div mul",
    prelu="leaky_relu prelu",
    quantize="dequantize quantize",
    quantised_function="elu exp gelu log rsqrt sqrt",
    softmax="log_softmax softmax",
    reduction="mean reduce_prod sum",
    sigmoids="logistic tanh",
    sums="add squared_difference sub",
)
_FIRST_INPUT_IS_A_SHAPE = places(reals.__name__, volumes="conv_3d_transpose")
"""Float32 only, but asked for here too, since its first input is no float."""

ARITHMETIC = Arithmetic("tflite", {**MOVERS, **PLAIN, **_OWN, **_FIRST_INPUT_IS_A_SHAPE}, floating="float")

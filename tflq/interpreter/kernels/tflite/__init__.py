"""Arithmetic `tflite`."""

from __future__ import annotations

from tflq.interpreter.kernels.move import MOVERS
from tflq.interpreter.kernels.plain import PLAIN
from tflq.interpreter.registry import Arithmetic, places

_ALONE = """
    abs add average_pool_2d batch_matmul bidirectional_sequence_lstm bidirectional_sequence_rnn concatenation
    conv_2d conv_3d_transpose depthwise_conv_2d dequantize div elu equal exp fully_connected gelu greater
    greater_equal hard_swish l2_normalization leaky_relu less less_equal log log_softmax logistic lstm
    max_pool_2d mean mul not_equal prelu quantize reduce_prod relu relu6 relu_0_to_1 relu_n1_to_1
    resize_bilinear rnn rsqrt softmax sqrt squared_difference sub sum svdf tanh transpose_conv
    unidirectional_sequence_lstm unidirectional_sequence_rnn
"""

ARITHMETIC = Arithmetic("tflite", {**MOVERS, **PLAIN, **places(__name__, _ALONE)}, floating="float")

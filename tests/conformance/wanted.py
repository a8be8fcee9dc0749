"""Which operators TFLite runs on quantized integers, and of which types: what the table must hold.

Facts read from the kernels of TFLite (tensorflow/lite/kernels), as registered by its reference and built-in resolvers.
"""

from __future__ import annotations

_BY_TYPES = {
    "int8": ("densify elu squared_difference svdf unidirectional_sequence_lstm"),
    "int8 int16": ("abs batch_matmul exp fill log neg reduce_prod rsqrt sqrt"),
    "int8 uint8": (
        "arg_max arg_min depth_to_space hard_swish l2_normalization log_softmax one_hot prelu relu_0_to_1 "
        "relu_n1_to_1 lstm scatter_nd space_to_depth sparse_to_dense"
    ),
    "int8 uint8 int16": (
        "add assign_variable average_pool_2d batch_to_space_nd broadcast_to concatenation conv_2d "
        "depthwise_conv_2d dilate div dynamic_update_slice equal expand_dims fully_connected gather gather_nd "
        "gelu greater greater_equal leaky_relu less less_equal logistic matrix_diag matrix_set_diag "
        "max_pool_2d maximum mean minimum mirror_pad mul not_equal pack pad padv2 read_variable reduce_max "
        "reduce_min relu relu6 reshape resize_bilinear resize_nearest_neighbor reverse_v2 select select_v2 "
        "slice softmax space_to_batch_nd split split_v squeeze stablehlo_gather stablehlo_pad strided_slice "
        "sub tanh tile topk_v2 transpose transpose_conv unique unpack"
    ),
    "int8 uint8 int16 int4": ("dequantize quantize"),
    "int8 uint8 int4": ("embedding_lookup"),
    "uint8": ("TFLite_Detection_PostProcess sum"),
    "uint8 int16": ("reverse_sequence"),
}

WANTED = {operator: types.split() for types, operators in _BY_TYPES.items() for operator in operators.split()}
"""Operator -> names of integer types that it takes with scales and zero points.

LSTM is registered for int16, too, but that is the state of the basic cell, whose input is uint8.
"""

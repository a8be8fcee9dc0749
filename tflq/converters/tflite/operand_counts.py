"""How many inputs and outputs an operator of a .tflite file has, and where an input may be absent: as TFLite's kernels.

Source: TFLite kernels/*.cc, what each Prepare demands of NumInputs and NumOutputs.
"""

from __future__ import annotations

from tflq.errors import GraphError
from tflq.graph import ABSENT, Node

_UNARY = (
    "abs average_pool_2d bitcast bucketize cast ceil complex_abs cos densify depth_to_space dequantize elu exp "
    "fake_quant floor gelu hard_swish hashtable_size imag l2_normalization l2_pool_2d leaky_relu "
    "local_response_normalization log log_softmax logical_not logistic matrix_diag max_pool_2d neg quantize "
    "random_standard_normal random_uniform rank read_variable real relu relu6 relu_0_to_1 relu_n1_to_1 round rsqrt "
    "shape sign sin skip_gram softmax space_to_depth sqrt square squeeze tanh where zeros_like"
)
_BINARY = (
    "add arg_max arg_min atan2 batch_matmul bitwise_xor broadcast_args broadcast_to cumsum div embedding_lookup equal "
    "expand_dims fill floor_div floor_mod gather gather_nd greater greater_equal less less_equal logical_and "
    "logical_or matrix_set_diag maximum mean minimum mirror_pad mul multinomial not_equal pow prelu reduce_all "
    "reduce_any reduce_max reduce_min reduce_prod resize_bilinear resize_nearest_neighbor reverse_sequence reverse_v2 "
    "rfft2d right_shift segment_sum squared_difference stablehlo_add stablehlo_and stablehlo_gather "
    "stablehlo_maximum stablehlo_minimum stablehlo_multiply stablehlo_pad stablehlo_reduce_window "
    "stablehlo_shift_left sub sum tile transpose"
)
_TERNARY = (
    "batch_to_space_nd conv_2d dilate dynamic_update_slice hashtable_find range scatter_nd select select_v2 slice "
    "space_to_batch_nd stablehlo_scatter unsorted_segment_max unsorted_segment_min unsorted_segment_prod "
    "unsorted_segment_sum"
)
_OTHERS: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "assign_variable": ((2,), (0,)),
    "bidirectional_sequence_lstm": ((48,), (1, 2)),
    "bidirectional_sequence_rnn": ((12,), (1, 2)),
    "call_once": ((0,), (0,)),
    "conv_3d": ((2, 3), (1,)),
    "conv_3d_transpose": ((3, 4), (1,)),
    "depthwise_conv_2d": ((2, 3), (1,)),
    "embedding_lookup_sparse": ((5,), (1,)),
    "fully_connected": ((2, 3), (1, 2)),
    "hashtable": ((0,), (1,)),
    "hashtable_import": ((3,), (0,)),
    "hashtable_lookup": ((3,), (2,)),
    "lsh_projection": ((2, 3), (1,)),
    "lstm": ((5, 20, 24), (1, 4)),
    "non_max_suppression_v4": ((5,), (2,)),
    "non_max_suppression_v5": ((6,), (3,)),
    "one_hot": ((4,), (1,)),
    "pad": ((2, 3), (1,)),
    "padv2": ((2, 3), (1,)),
    "reduce_window": ((5,), (1,)),
    "reshape": ((1, 2), (1,)),
    "rnn": ((5,), (1,)),
    "sparse_to_dense": ((4,), (1,)),
    "split": ((2,), ()),
    "split_v": ((3,), ()),
    "stablehlo_rng_bit_generator": ((1,), (2,)),
    "strided_slice": ((4,), (1,)),
    "svdf": ((5,), (1,)),
    "topk_v2": ((2,), (2,)),
    "transpose_conv": ((3, 4), (1,)),
    "unidirectional_sequence_lstm": ((20, 24), (1,)),
    "unidirectional_sequence_rnn": ((5,), (1,)),
    "unique": ((1,), (2,)),
    "unpack": ((1,), ()),
    "var_handle": ((0,), (1,)),
    **dict.fromkeys(("add_n", "concatenation", "pack"), ((), (1,))),
}
_COUNTS = {
    **dict.fromkeys(_UNARY.split(), ((1,), (1,))),
    **dict.fromkeys(_BINARY.split(), ((2,), (1,))),
    **dict.fromkeys(_TERNARY.split(), ((3,), (1,))),
    **_OTHERS,
}
"""Operator -> allowed numbers of inputs and of outputs; () for one or more."""

_MAY_LACK_INPUTS = frozenset(
    {"bidirectional_sequence_lstm", "bidirectional_sequence_rnn", "conv_3d", "conv_3d_transpose", "custom"}
    | {"fully_connected", "lsh_projection", "lstm", "pad", "padv2", "rnn", "svdf"}
    | {"transpose_conv", "unidirectional_sequence_lstm", "unidirectional_sequence_rnn"}
)


def check_counts(node: Node, where: str) -> None:
    """Check the params of a node's inputs and outputs; operators that take any are not looked at.

    Raises:
        GraphError: another number than TFLite's kernel takes, or an absent input that it needs.
    """
    if node.operator not in _COUNTS:
        return
    for what, found, allowed in zip(
        ("inputs", "outputs"), (node.inputs, node.outputs), _COUNTS[node.operator], strict=True
    ):
        if len(found) not in allowed if allowed else not found:
            names = " or ".join(map(str, allowed)) or "one or more"
            raise GraphError(f"{where}: found {len(found)} {what}; {node.operator} has {names}")
    if ABSENT in node.inputs and node.operator not in _MAY_LACK_INPUTS:
        raise GraphError(f"{where}: input {node.inputs.index(ABSENT)} is absent; {node.operator} needs it")

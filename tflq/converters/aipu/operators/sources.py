"""How each operator of TFLite becomes layers of Compass: one row an operator (docs/rules/aipu/operators.md)."""

from __future__ import annotations

from collections.abc import Mapping

from tflq.converters.aipu.descriptor import Source
from tflq.converters.aipu.operators import (
    boxes,
    functions,
    indices,
    linear,
    moves,
    pairs,
    recurrent,
    reductions,
    rows,
    windows,
)
from tflq.converters.mappings import find_rule
from tflq.graph import Node
from tflq.graph.operators import CONVOLUTIONS, RESHAPES, Trait, with_traits

_FILTER = Source(linear.map_filter, 2, is_image=True, refuse=linear.refuse_filter)
_BLOCKS = Source(moves.map_blocks, constants=(1, 2), any_type=True, refuse=moves.refuse_blocks)
_LOGICAL = with_traits(Trait.REDUCTION, Trait.LOGICAL)

SOURCES: Mapping[str, Source] = {
    **dict.fromkeys(CONVOLUTIONS, _FILTER),
    "conv_3d": Source(linear.map_volume, 2, refuse=linear.refuse_filter),
    "fully_connected": Source(linear.map_fully_connected, 2, refuse=linear.refuse_filter),
    "transpose_conv": Source(linear.map_transpose_conv, 3, data=2, is_image=True, refuse=linear.refuse_filter),
    "batch_matmul": Source(linear.map_mat_mul, 2),
    **dict.fromkeys(("add", "sub", "mul"), Source(pairs.map_pair, 2, any_type=True)),
    **dict.fromkeys(("maximum", "minimum"), Source(pairs.map_pair, 2)),
    "add_n": Source(pairs.map_sum_of_many),
    **dict.fromkeys(
        with_traits(Trait.PAIR, Trait.COMPARISON | Trait.LOGICAL), Source(pairs.map_comparison, 2, any_type=True)
    ),
    "logical_not": Source(pairs.map_logical_not, any_type=True),
    "div": Source(pairs.map_quotient, 2),
    "floor_div": Source(pairs.map_floored_quotient, 2),
    "floor_mod": Source(pairs.map_remainder, 2, refuse=pairs.refuse_remainder),
    "pow": Source(pairs.map_pow, 2),
    **dict.fromkeys(("select", "select_v2"), Source(pairs.map_select, 3, data=1, any_type=True)),
    "squared_difference": Source(pairs.map_squared_difference, 2),
    "non_max_suppression_v4": Source(boxes.map_suppression, constants=(2, 3, 4), refuse=boxes.refuse_suppression),
    "non_max_suppression_v5": Source(boxes.map_suppression, constants=(2, 3, 4, 5), refuse=boxes.refuse_suppression),
    "elu": Source(functions.map_method("ELU", alpha=1.0)),
    "hard_swish": Source(functions.map_method("HARDSWISH")),
    "logistic": Source(functions.map_method("SIGMOID")),
    "relu": Source(functions.map_method("RELU")),
    "relu6": Source(functions.map_method("RELU6")),
    "tanh": Source(functions.map_method("TANH")),
    "abs": Source(functions.map_named("abs")),
    "ceil": Source(functions.map_named("ceil")),
    "cos": Source(functions.map_named("cosine")),
    "exp": Source(functions.map_named("exp")),
    "floor": Source(functions.map_named("floor")),
    "log": Source(functions.map_named("log")),
    "neg": Source(functions.map_named("negative")),
    "round": Source(functions.map_named("round")),
    "rsqrt": Source(functions.map_named("rsqrt", "_sqrt")),
    "sign": Source(functions.map_named("sign")),
    "sin": Source(functions.map_named("sine")),
    "sqrt": Source(functions.map_named("sqrt")),
    "square": Source(functions.map_named("square")),
    **dict.fromkeys(("relu_0_to_1", "relu_n1_to_1"), Source(functions.map_limited)),
    "cast": Source(functions.map_cast, any_type=True, refuse=functions.refuse_cast),
    "gelu": Source(functions.map_gelu),
    "leaky_relu": Source(functions.map_leaky),
    "log_softmax": Source(functions.map_log_softmax),
    "prelu": Source(functions.map_prelu, constants=(1,)),
    "softmax": Source(functions.map_softmax, refuse=functions.refuse_softmax),
    **dict.fromkeys(("arg_max", "arg_min"), Source(indices.map_extreme, constants=(1,))),
    "one_hot": Source(indices.map_one_hot, constants=(1, 2, 3), any_type=True),
    "topk_v2": Source(indices.map_top_k, constants=(1,)),
    **dict.fromkeys(RESHAPES, Source(moves.map_reshape, any_type=True)),
    "unpack": Source(moves.map_unpack, any_type=True),
    **dict.fromkeys(("pad", "mirror_pad"), Source(moves.map_pad, constants=(1,), any_type=True)),
    "padv2": Source(moves.map_pad, constants=(1, 2), any_type=True),
    "transpose": Source(moves.map_transpose, constants=(1,), any_type=True),
    **dict.fromkeys(with_traits(Trait.REPEAT), Source(moves.map_tile, constants=(1,), any_type=True)),
    "split": Source(moves.map_split, 2, constants=(0,), data=1, any_type=True),
    "split_v": Source(moves.map_split, constants=(1, 2), any_type=True),
    "slice": Source(moves.map_slice, constants=(1, 2), any_type=True),
    "strided_slice": Source(moves.map_strided_slice, constants=(1, 2, 3), any_type=True, refuse=moves.refuse_slice),
    **dict.fromkeys(("batch_to_space_nd", "space_to_batch_nd"), _BLOCKS),
    **dict.fromkeys(("depth_to_space", "space_to_depth"), Source(moves.map_depth, any_type=True, is_image=True)),
    **dict.fromkeys(with_traits(Trait.REDUCTION) - _LOGICAL, Source(reductions.map_reduce, constants=(1,))),
    **dict.fromkeys(_LOGICAL, Source(reductions.map_reduce, constants=(1,), any_type=True)),
    "cumsum": Source(reductions.map_cumsum, constants=(1,)),
    "l2_normalization": Source(reductions.map_normalization),
    "local_response_normalization": Source(reductions.map_lrn, is_image=True),
    "segment_sum": Source(reductions.map_segments, constants=(1,)),
    "concatenation": Source(rows.map_concatenation, any_type=True),
    "pack": Source(rows.map_pack, any_type=True),
    "embedding_lookup": Source(rows.map_embedding, 2, any_type=True),
    "gather": Source(rows.map_gather, 2, any_type=True),
    "gather_nd": Source(rows.map_gather_nd, 2, any_type=True),
    "reverse_sequence": Source(rows.map_reverse_sequence, 2, any_type=True),
    "reverse_v2": Source(rows.map_reverse, constants=(1,), any_type=True, refuse=rows.refuse_reverse),
    "scatter_nd": Source(rows.map_scatter_nd, constants=(2,), any_type=True),
    "unidirectional_sequence_lstm": Source(recurrent.map_lstm_sequence, refuse=recurrent.refuse_lstm_sequence),
    **dict.fromkeys(("average_pool_2d", "max_pool_2d"), Source(windows.map_pool, is_image=True)),
    **dict.fromkeys(
        with_traits(Trait.RESIZE), Source(windows.map_resize, constants=(1,), any_type=True, is_image=True)
    ),
}
"""Operator of TFLite -> how it becomes layers."""


def source_of(node: Node) -> Source | None:
    """Return how an operator becomes layers, by a rule of tflq or of another package; None without."""
    return SOURCES.get(node.operator) or find_rule("aipu", node, Source)

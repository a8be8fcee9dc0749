"""Operators that only move data: the same integers in every arithmetic."""

from __future__ import annotations

from tflq.interpreter.registry import places

_ALONE = """
    batch_to_space_nd broadcast_args broadcast_to concatenation densify depth_to_space dilate
    dynamic_update_slice embedding_lookup embedding_lookup_sparse expand_dims fill gather gather_nd
    hashtable_lookup lsh_projection matrix_diag matrix_set_diag mirror_pad non_max_suppression_v4
    non_max_suppression_v5 one_hot pack pad padv2 range rank reshape resize_nearest_neighbor reverse_sequence
    reverse_v2 scatter_nd segment_sum shape skip_gram slice space_to_batch_nd space_to_depth sparse_to_dense
    split split_v squeeze stablehlo_gather stablehlo_pad stablehlo_scatter strided_slice tile topk_v2
    transpose unique unpack unsorted_segment_max unsorted_segment_min unsorted_segment_prod
    unsorted_segment_sum where
"""

MOVERS = places(__name__, _ALONE) | {"TFLite_Detection_PostProcess": f"{__name__}.detection_post_process"}

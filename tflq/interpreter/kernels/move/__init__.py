"""Operators that only move data: the same integers in every arithmetic."""

from __future__ import annotations

from tflq.interpreter.registry import places

MOVERS = places(
    __name__,
    """
    broadcast_args concatenation densify dilate dynamic_update_slice embedding_lookup embedding_lookup_sparse gather
    gather_nd hashtable_lookup lsh_projection mirror_pad one_hot range resize_nearest_neighbor reverse_sequence
    skip_gram slice stablehlo_gather stablehlo_pad stablehlo_scatter strided_slice topk_v2 unique where
    """,
    batch_and_space="batch_to_space_nd space_to_batch_nd",
    depth_and_space="depth_to_space space_to_depth",
    matrix_diag="matrix_diag matrix_set_diag",
    order="reverse_v2 transpose",
    pad="pad padv2",
    parts="pack split split_v unpack",
    reshape="expand_dims reshape squeeze",
    repeat="broadcast_to fill tile",
    scatter="scatter_nd sparse_to_dense",
    segments="""
    segment_sum unsorted_segment_max unsorted_segment_min unsorted_segment_prod unsorted_segment_sum
    """,
    shape="rank shape",
    suppression="non_max_suppression_v4 non_max_suppression_v5",
    detection_post_process="TFLite_Detection_PostProcess",
)

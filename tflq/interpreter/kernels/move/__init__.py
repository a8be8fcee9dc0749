"""Operators that only move data: the same integers in every arithmetic."""

from __future__ import annotations

from tflq.interpreter.registry import places

MOVERS = places(
    __name__,
    "resize_nearest_neighbor",
    blocks="batch_to_space_nd depth_to_space space_to_batch_nd space_to_depth",
    found="unique where",
    gather="gather gather_nd stablehlo_gather",
    lookups="embedding_lookup embedding_lookup_sparse hashtable_lookup",
    matrix_diag="matrix_diag matrix_set_diag",
    order="reverse_sequence reverse_v2 topk_v2 transpose",
    pad="dilate mirror_pad pad padv2 stablehlo_pad",
    parts="concatenation pack split split_v unpack",
    reshape="densify expand_dims reshape squeeze",
    repeat="broadcast_to fill one_hot range tile",
    scatter="scatter_nd sparse_to_dense stablehlo_scatter",
    segments="""
    segment_sum unsorted_segment_max unsorted_segment_min unsorted_segment_prod unsorted_segment_sum
    """,
    shape="broadcast_args rank shape",
    slices="dynamic_update_slice slice strided_slice",
    text="lsh_projection skip_gram",
    suppression="non_max_suppression_v4 non_max_suppression_v5",
    detection_post_process="TFLite_Detection_PostProcess",
)

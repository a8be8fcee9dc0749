"""Operators that only move data: the same integers in every arithmetic."""

from __future__ import annotations

_HERE = "tflq.interpreter.kernels.move"
_OPERATORS: tuple[str, ...] = (
    "batch_to_space_nd",
    "broadcast_args",
    "broadcast_to",
    "concatenation",
    "depth_to_space",
    "expand_dims",
    "fill",
    "gather",
    "gather_nd",
    "mirror_pad",
    "one_hot",
    "pack",
    "pad",
    "padv2",
    "range",
    "rank",
    "reshape",
    "resize_nearest_neighbor",
    "reverse_sequence",
    "reverse_v2",
    "scatter_nd",
    "shape",
    "slice",
    "space_to_batch_nd",
    "space_to_depth",
    "sparse_to_dense",
    "split",
    "split_v",
    "squeeze",
    "strided_slice",
    "tile",
    "topk_v2",
    "transpose",
    "unpack",
)

MOVERS = {operator: f"{_HERE}.{operator}" for operator in _OPERATORS}

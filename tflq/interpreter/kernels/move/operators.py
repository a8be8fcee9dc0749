"""Table of the operators that only move data: the same integers in every arithmetic."""

from __future__ import annotations

from tflq.interpreter.kernels.move import (
    blocks,
    detection_post_process,
    found,
    gather,
    lookups,
    matrix_diag,
    order,
    pad,
    parts,
    repeat,
    reshape,
    resize_nearest_neighbor,
    scatter,
    segments,
    shape,
    slices,
    suppression,
    text,
)
from tflq.interpreter.registry import without_scales

MOVERS = without_scales(
    {
        **blocks.KERNELS,
        **detection_post_process.KERNELS,
        **found.KERNELS,
        **gather.KERNELS,
        **lookups.KERNELS,
        **matrix_diag.KERNELS,
        **order.KERNELS,
        **pad.KERNELS,
        **parts.KERNELS,
        **repeat.KERNELS,
        **reshape.KERNELS,
        **resize_nearest_neighbor.KERNELS,
        **scatter.KERNELS,
        **segments.KERNELS,
        **shape.KERNELS,
        **slices.KERNELS,
        **suppression.KERNELS,
        **text.KERNELS,
    }
)

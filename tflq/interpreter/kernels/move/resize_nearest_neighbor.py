"""Kernel of RESIZE_NEAREST_NEIGHBOR.

scale = in / out, or (in - 1) / (out - 1) with align_corners; index = floor((i + 0.5 or 0) * scale), rounded half away
from zero with align_corners; at most in - 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, Node, Operands
from tflq.interpreter.numerics.fixed_point import round_half_away
from tflq.interpreter.operands.movable import FIXED_SIZE, require_movable, resized_shape
from tflq.interpreter.registry import Kernel

TYPES = tuple(dtype for dtype in FIXED_SIZE if dtype.bits < 64)


@dataclass(frozen=True)
class ResizeNearestNeighbor:
    """Which of the input's rows and columns each of the output's takes.

    Attributes:
        rows: one index for each row of the output.
        columns: one index for each column.
    """

    rows: tuple[int, ...]
    columns: tuple[int, ...]


def lower(node: Node, operands: Operands) -> ResizeNearestNeighbor:
    """Decide rows and columns.

    Raises:
        GraphError: another rank than 4, a size below 1 or computed at run time.
        UnsupportedError: a type that TFLite does not resize.
    """
    source = operands.input(0)
    require_movable(node, source, operands.output(), TYPES)
    sizes = resized_shape(operands)
    align, centers = (node.attributes.boolean(name, False) for name in ("align_corners", "half_pixel_centers"))
    rows, columns = (_nearest(source.shape[1 + i], sizes[i], align, centers) for i in range(2))
    return ResizeNearestNeighbor(rows, columns)


def run(params: ResizeNearestNeighbor, x: Array, *_size: Array) -> tuple[Array, ...]:
    """Run RESIZE_NEAREST_NEIGHBOR: T[S, N, H, W, C] -> T[S, N, rows, columns, C]."""
    return (np.take(np.take(x, params.rows, 2), params.columns, 3),)


def _nearest(size: int, wanted: int, align: bool, centers: bool) -> tuple[int, ...]:
    corners = align and wanted > 1
    scale = np.float32(size - 1) / np.float32(wanted - 1) if corners else np.float32(size) / np.float32(wanted)
    position = (np.arange(wanted).astype(np.float32) + np.float32(0.5 if centers else 0.0)) * scale
    indices = (round_half_away(position) if align else np.floor(position)).astype(np.int64)
    return tuple(int(i) for i in np.clip(indices, 0, size - 1))


KERNELS = {
    "resize_nearest_neighbor": Kernel(lower, run,
        "each element of the output is the input's nearest one; its index is computed in float32",
        "TFLite kernels/resize_nearest_neighbor.cc and internal/reference/resize_nearest_neighbor.h"),
}  # fmt: skip

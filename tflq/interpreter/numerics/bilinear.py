"""The float32 bilinear blend, which TFLite's reference kernel uses for float32 and for uint8.

along each axis: scale = in / out, or (in - 1) / (out - 1) with align_corners;
position = (i + 0.5) * scale - 0.5 with half_pixel_centers, else i * scale;
low = max(floor(position), 0), high = min(ceil(position), in - 1), part = position - low;
result = x[ly, lx] * (1 - py) * (1 - px) + x[hy, lx] * py * (1 - px) + x[ly, hx] * (1 - py) * px + x[hy, hx] * py * px,
each operation rounded to float32, from left to right.

Source: TFLite kernels/internal/reference/resize_bilinear.h.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.operands.movable import resized_shape


@dataclass(frozen=True, eq=False)
class Positions:
    """Positions of the elements along one axis of the output between two elements of the input.

    Attributes:
        low: int64[n]: index of the one before.
        high: int64[n]: index of the one after.
        part: Distance from the one before: float32[n], or int32[n] in 1/1024.
    """

    low: NDArray[np.int64]
    high: NDArray[np.int64]
    part: NDArray[np.float32] | NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class ResizeBilinear:
    """Positions along height and width."""

    rows: Positions
    columns: Positions


def lower_float(node: Node, operands: Operands) -> ResizeBilinear:
    """Decide positions in float32.

    Raises:
        GraphError: another rank than 4, a size below 1 or computed at run time.
        UnsupportedError: both options at once.
    """
    align, centers = options(node)
    shape, sizes = operands.input(0).shape, resized_shape(operands)
    return ResizeBilinear(*(_positions(shape[1 + i], sizes[i], align, centers) for i in range(2)))


def options(node: Node) -> tuple[bool, bool]:
    """Return align_corners and half_pixel_centers.

    Raises:
        UnsupportedError: both are set, which no kernel defines.
    """
    align, centers = (node.attributes.boolean(name, False) for name in ("align_corners", "half_pixel_centers"))
    if align and centers:
        raise UnsupportedError("align_corners and half_pixel_centers are both set; one of them is allowed")
    return align, centers


def blend_float(params: ResizeBilinear, x: Array) -> NDArray[np.float32]:
    """Return the blend, float32[S, N, rows, columns, C], of x, uint8 or float32 [S, N, H, W, C]."""
    rows, columns = params.rows, params.columns
    one = np.float32(1)
    down = rows.part.astype(np.float32, copy=False)[:, None, None]
    right = columns.part.astype(np.float32, copy=False)[:, None]
    total: NDArray[np.float32] | None = None
    for column, across in ((columns.low, one - right), (columns.high, right)):
        for row, along in ((rows.low, one - down), (rows.high, down)):
            corner = np.take(np.take(x, row, 2), column, 3).astype(np.float32, copy=False)
            weighted = np.asarray(corner * along * across)
            total = weighted if total is None else total + weighted
    if total is None:
        raise GraphError("a blend needs four corners")
    return total


def _positions(size: int, wanted: int, align: bool, centers: bool) -> Positions:
    corners = align and wanted > 1
    scale = np.float32(size - 1) / np.float32(wanted - 1) if corners else np.float32(size) / np.float32(wanted)
    index = np.arange(wanted).astype(np.float32)
    half = np.float32(0.5)
    position = (index + half) * scale - half if centers else index * scale
    low = np.maximum(np.floor(position).astype(np.int64), 0)
    high = np.minimum(np.ceil(position).astype(np.int64), size - 1)
    if (low >= size).any():
        raise GraphError(
            f"resizing {size} to {wanted} reads behind the last element: float32 cannot hold the positions"
        )
    return Positions(low, high, position - low.astype(np.float32))

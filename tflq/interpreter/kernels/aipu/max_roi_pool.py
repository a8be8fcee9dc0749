"""MaxRoiPool: the largest quantized value of each bin of a box; an empty bin holds the code 0 (docs/aipu.md, 8).

Source: Compass Optimizer, ops/maxroipooling.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers
from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.boxes import together
from tflq.interpreter.kernels.aipu.imported import is_imported
from tflq.interpreter.kernels.aipu.scales import offset_of, scale_of

FRACTION = 16


@dataclass(frozen=True, eq=False)
class MaxRoiPoolParams:
    """The params of one MaxRoiPool; pairs are for y and x.

    Attributes:
        pooled: bins.
        spatial: RNE(spatial / s_roi * 2^16).
        box_offset: zp of the boxes.
    """

    pooled: tuple[int, int]
    spatial: tuple[int, int]
    box_offset: int


def lower(node: Node, operands: Operands) -> MaxRoiPoolParams:
    """Decide the spatial scales.

    Inputs: features [1, H, W, C], boxes [R, 5] or [1, R, 5] (image, y0, x0, y1, x1) in pixels of the image. Output
    [R, PH, PW, C], of the features' type.

    Raises:
        UnsupportedError: several images: the Optimizer takes the image's number without its scale.
    """
    features, rois = operands.input(0), operands.input(1)
    if features.shape[0] != 1:
        raise UnsupportedError(f"features of {features.shape[0]} images; allowed is 1: cut the batch in front of it")
    pooled = node.attributes.integers("pooled_shape")
    inverse, scales = np.float32(1) / scale_of(rois), node.attributes.reals("spatial")
    if is_imported(node):
        spatial = tuple(int(s) for s in scales)
    else:
        spatial = tuple(int(np.rint(np.float32(s * float(inverse)) * np.float32(1 << FRACTION))) for s in scales)
    return MaxRoiPoolParams((pooled[0], pooled[1]), (spatial[0], spatial[1]), offset_of(rois))


def run(params: MaxRoiPoolParams, features: Array, rois: Array) -> tuple[Array, ...]:
    """Run MaxRoiPool: quantized [S, 1, H, W, C], [S, R, 5] -> quantized [S, R, PH, PW, C].

    corner = ((q + zp) * spatial + 2^15) >> 16; size = max(y1 - y0 + 1, 1); bin i reaches from
    y0 + floor(i * size / PH) to y0 + ceil((i + 1) * size / PH), inside the map.
    """
    features, rois = together(features, rois)
    boxes = rois.reshape(len(rois), -1, 5)[..., 1:].astype(np.int64) + params.box_offset
    found = np.zeros((*boxes.shape[:2], *params.pooled, features.shape[-1]), features.dtype)
    limits = [_bins(params, axis, boxes, features.shape[2 + axis]) for axis in range(2)]
    for place in np.ndindex(*boxes.shape[:2]):
        image = features[place[0], 0]
        rows, columns = (list(zip(first[place], last[place], strict=True)) for first, last in limits)
        for i, (top, bottom) in enumerate(rows):
            for j, (left, right) in enumerate(columns):
                if top < bottom and left < right:
                    found[place][i, j] = image[top:bottom, left:right].max(axis=(0, 1))
    return (found,)


def _bins(params: MaxRoiPoolParams, axis: int, boxes: Integers, size: int) -> tuple[Integers, Integers]:
    """Return where each bin starts and ends, int64[S, R, bins]."""
    corners = (boxes[..., axis::2] * params.spatial[axis] + (1 << (FRACTION - 1))) >> FRACTION
    start = corners[..., :1]
    length, bins = np.maximum(corners[..., 1:] - start + 1, 1), params.pooled[axis]
    i = np.arange(bins)
    return np.clip(start + i * length // bins, 0, size), np.clip(start - (-(i + 1) * length // bins), 0, size)

"""Bilinear samples of a feature map inside regions of interest: RoiAlign and PyramidROIAlign (docs/aipu.md, 8).

MAX_ROI_POOL: MaxRoiPool: the largest quantized value of each bin of a box; an empty bin holds the code 0 (docs/aipu.md,
8). Source: Compass Optimizer, ops/maxroipooling.py.

Source: Compass Optimizer, ops/roialign.py and pyramidroi.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers
from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.boxes import together
from tflq.interpreter.kernels.aipu.imported import is_imported
from tflq.interpreter.kernels.aipu.scales import offset_of, scale_of
from tflq.interpreter.operands.checks import require_choice
from tflq.interpreter.registry import Kernel

HALF_PIXEL, OUTPUT_HALF_PIXEL = "HALF_PIXEL", "OUTPUT_HALF_PIXEL"

Weigh = Callable[[Integers, Integers], Array]
"""The weight of one corner from its parts along y and x."""


def half_pixel_of(node: Node) -> bool:
    """Whether boxes move by half a pixel.

    Raises:
        UnsupportedError: a coordinate mode that is not known.
    """
    mode = require_choice(node, "coordinate_transformation_mode", (HALF_PIXEL, OUTPUT_HALF_PIXEL))
    return mode == HALF_PIXEL


@dataclass(frozen=True, eq=False)
class Positions:
    """Where the samples of each bin fall along one axis; all int64[R, bins, n].

    Attributes:
        low: place in front.
        high: place behind.
        near: part of the weight of the place in front.
        far: part of the weight of the place behind.
    """

    low: Integers
    high: Integers
    near: Integers
    far: Integers


def truncated(x: Array) -> Integers:
    """Return whole numbers, rounded toward zero."""
    whole: Integers = np.trunc(x).astype(np.int64)
    return whole


def pool_samples(image: Integers, y: Positions, x: Positions, weigh: Weigh, is_maximum: bool) -> Array:
    """Return the sum over all samples and corners of weight * value, or the largest of these products.

    A place in front of the map counts from its end, as the Optimizer's flat offset does.

    Args:
        image: quantized values + zp, int64[H, W, C].
        y: samples along y.
        x: samples along x.
        weigh: the product of two parts.
        is_maximum: the largest product instead of the sum.

    Returns:
        [R, bins of y, bins of x, C], whole numbers.
    """
    height, width, channels = image.shape
    flat = image.reshape(-1, channels)
    corners = [(a, b) for a in ((y.low, y.near), (y.high, y.far)) for b in ((x.low, x.near), (x.high, x.far))]
    join = np.maximum if is_maximum else np.add
    total: Array | None = None
    for k, m in np.ndindex(y.low.shape[2], x.low.shape[2]):
        for (row, row_part), (column, column_part) in corners:
            place = (row[:, :, None, k] * width + column[:, None, :, m]) % (height * width)
            weight = weigh(row_part[:, :, None, k], column_part[:, None, :, m])
            value = flat[place] * weight[..., None]
            total = value if total is None else join(total, value)
    assert total is not None
    return total


def shifted(bits: int) -> Weigh:
    """Return the weight (a * b) >> bits."""
    return lambda a, b: (a * b) >> bits


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


def _lower_max_roi_pool(node: Node, operands: Operands) -> MaxRoiPoolParams:
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


def _run_max_roi_pool(params: MaxRoiPoolParams, features: Array, rois: Array) -> tuple[Array, ...]:
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


KERNELS = {
    "max_roi_pool": Kernel(_lower_max_roi_pool, _run_max_roi_pool),
}

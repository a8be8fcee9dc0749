"""Which level of the pyramid a region belongs to, and the float PyramidROIAlign (Mask R-CNN, PyramidROIAlign)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from detector.scenes import HEIGHT, WIDTH

CANONICAL = 32.0
"""Side in pixels of the region that belongs to P4; 224 in Mask R-CNN's images of 1024 x 1024."""

LEVEL_AREAS = tuple((CANONICAL * 2.0 ** (level - 4.5)) ** 2 / (HEIGHT * WIDTH) for level in (3, 4, 5))
"""From which part of the image's area a region belongs to P3, P4, P5: round(log2(sqrt(area) / CANONICAL)) + 4."""

Boxes = NDArray[np.float64]
Reals = NDArray[np.float32]


def levels_of(boxes: Boxes) -> NDArray[np.int64]:
    """Return 0 to 3 for P2 to P5, int64[...], of boxes [..., 4] in parts of the image."""
    areas = (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])
    return np.searchsorted(LEVEL_AREAS, areas, side="right")


def pyramid_roi_align(pyramid: tuple[Reals, ...], boxes: Boxes, size: int) -> Reals:
    """Return float32[R, size, size, C]: each box's own level, corners on the centers of the border's pixels.

    Args:
        pyramid: P2 to P5 of one image, float32[H, W, C].
        boxes: float64[R, 4], in parts of the image.
        size: of the result.
    """
    result = np.zeros((len(boxes), size, size, pyramid[0].shape[-1]), np.float32)
    for level, features in enumerate(pyramid):
        chosen = np.flatnonzero(levels_of(boxes) == level)
        result[chosen] = crop_and_resize(features, boxes[chosen], size)
    return result


def crop_and_resize(features: Reals, boxes: Boxes, size: int) -> Reals:
    """Return float32[R, size, size, C]: bilinear at y = (H - 1) * (y0 + i * (y1 - y0) / (size - 1))."""
    steps = np.linspace(0, 1, size)
    y, x = (
        np.clip((n - 1) * (boxes[:, a, None] + steps * (boxes[:, a + 2] - boxes[:, a])[:, None]), 0, n - 1)
        for a, n in enumerate(features.shape[:2])
    )
    top, left = np.floor(y).astype(np.int64), np.floor(x).astype(np.int64)
    bottom, right = np.ceil(y).astype(np.int64), np.ceil(x).astype(np.int64)
    v, u = (y - top)[:, :, None, None], (x - left)[:, None, :, None]
    above = features[top[:, :, None], left[:, None]] * (1 - u) + features[top[:, :, None], right[:, None]] * u
    below = features[bottom[:, :, None], left[:, None]] * (1 - u) + features[bottom[:, :, None], right[:, None]] * u
    result: Reals = (above * (1 - v) + below * v).astype(np.float32)
    return result

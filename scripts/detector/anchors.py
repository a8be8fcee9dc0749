"""Anchors and the float rules between boxes and deltas, as in Mask R-CNN (apply_box_deltas_graph)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from detector.network import RATIOS, STRIDES
from detector.scenes import HEIGHT, WIDTH

DEVIATIONS = np.array([0.1, 0.1, 0.2, 0.2])
"""What one unit of dy, dx, dh, dw stands for."""

_SIDE = 2.0

Boxes = NDArray[np.float64]


def anchors() -> Boxes:
    """Return all anchors, float64[K, 4], clipped to the image: P2 first, then row by row, then ratio by ratio."""
    levels = []
    for stride in STRIDES:
        heights = _SIDE * stride * np.sqrt(np.array(RATIOS))
        widths = _SIDE * stride / np.sqrt(np.array(RATIOS))
        y, x = np.meshgrid(np.arange(HEIGHT // stride) + 0.5, np.arange(WIDTH // stride) + 0.5, indexing="ij")
        centers = np.stack([y, x], axis=-1)[:, :, None] * stride
        sizes = np.stack([heights, widths], axis=-1) / 2
        levels.append(np.concatenate([centers - sizes, centers + sizes], axis=-1).reshape(-1, 4))
    boxes: Boxes = np.clip(np.concatenate(levels) / np.array([HEIGHT, WIDTH, HEIGHT, WIDTH]), 0, 1)
    return boxes


def apply_deltas(boxes: Boxes, deltas: Boxes) -> Boxes:
    """Return boxes moved and stretched by deltas [..., 4] in units of DEVIATIONS, clipped to 0..1."""
    dy, dx, dh, dw = np.moveaxis(deltas * DEVIATIONS, -1, 0)
    y0, x0, y1, x1 = np.moveaxis(boxes, -1, 0)
    h, w = y1 - y0, x1 - x0
    y, x = y0 + h / 2 + dy * h, x0 + w / 2 + dx * w
    h, w = h * np.exp(dh), w * np.exp(dw)
    moved: Boxes = np.clip(np.stack([y - h / 2, x - w / 2, y + h / 2, x + w / 2], axis=-1), 0, 1)
    return moved


def deltas_between(boxes: Boxes, targets: Boxes) -> Boxes:
    """Return the deltas that turn boxes into targets; the inverse of `apply_deltas` without its clipping."""
    size, wanted = boxes[..., 2:] - boxes[..., :2], targets[..., 2:] - targets[..., :2]
    center, aim = boxes[..., :2] + size / 2, targets[..., :2] + wanted / 2
    deltas: Boxes = np.concatenate([(aim - center) / size, np.log(wanted / size)], axis=-1) / DEVIATIONS
    return deltas

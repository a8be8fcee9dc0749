"""Bilinear samples of a feature map inside regions of interest: RoiAlign and PyramidROIAlign (docs/aipu.md, 8).

Source: Compass Optimizer, ops/roialign.py and pyramidroi.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers
from tflq.graph import Array, Node
from tflq.interpreter.operands.checks import require_choice

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

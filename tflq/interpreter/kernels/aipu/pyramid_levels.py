"""PyramidROIAlign of chapter 5: boxes in 0..1, maps of different scales, one output scale.

    level = clamp(4 + round(log2(sqrt(h * w) / (canonical / sqrt(image area)))), 2, 5), as limits of the area h_q * w_q
    y_i = (H - 1) * (y0 + i * (y1 - y0) / (rows - 1)), clamped to 0..H - 1, in F fraction bits

The float layer is Mask R-CNN's PyramidROIAlign (tf.image.crop_and_resize): one bilinear point a bin, the first and the
last on the box's edges. Height and width are each the map's own; the whitepaper's code swaps them, which shows on maps
that are not square. Compass's layer of the kind (lower_crop) takes maps of one scale and images of 1024 x 1024.

A point is the sum of four quantized values (x + zp_l) with weights that add up to 2^(2F), below 2^31 by the choice of
F. All levels share one output type; each has its own M / 2^N of s_y / s_l.

Source: whitepaper ACN-AWP-1002A, 5.1.3.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers
from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands, Tensor
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, OutputCodes, codes_of, find_multiplier
from tflq.interpreter.kernels.aipu.scales import bits_of, magnitude_of, offset_of, scale_of

LEVELS = 4
IMAGE = 1024
_POSITION_BITS = 15
_STEP_BITS = 12
_SUM_BITS = 31


@dataclass(frozen=True, eq=False)
class Level:
    """One map of the pyramid.

    Attributes:
        offset: zp_l.
        sides: height and width.
        positions: M and N of (side - 1) * 2^F / s_box for both.
        rescale: M and N of s_y / s_l / 2^(2F).
    """

    offset: int
    sides: tuple[int, int]
    positions: tuple[Multiplier, Multiplier]
    rescale: Multiplier


@dataclass(frozen=True, eq=False)
class PyramidLevelsParams:
    """The params of one layer.

    Attributes:
        box_offset: zp of the boxes.
        limits: areas h_q * w_q from which a box belongs to the second, third and fourth map.
        fraction: F.
        steps: i * M and N of 1 / (rows - 1), 1 / (columns - 1).
        levels: the four maps, the largest first.
        codes: Quantized values of the output.
    """

    box_offset: int
    limits: tuple[int, int, int]
    fraction: int
    steps: tuple[tuple[Integers, int], tuple[Integers, int]]
    levels: tuple[Level, ...]
    codes: OutputCodes


def has_own_scales(node: Node) -> bool:
    """Whether a layer is of this kind: it specifies the size of box that belongs to the third map."""
    return "canonical_size" in node.attributes


def lower(node: Node, operands: Operands) -> PyramidLevelsParams:
    """Decide the limits of the levels, F, and the multipliers.

    Inputs: boxes [1, R, 4] (y0, x0, y1, x1, 0 to 1), four maps [1, H, W, C]. Output [R, rows, columns, C].
    `canonical_size` is the side in pixels of a box of the third map, in images of image_height x image_width.

    Raises:
        UnsupportedError: another number of maps, or an output of one row or column.
    """
    boxes, output = operands.input(0), operands.output()
    maps = [t for t in operands.inputs[1:] if t is not None]
    size = output.shape[1:3]
    if len(maps) != LEVELS or min(size) < 2:
        raise UnsupportedError(
            f"{len(maps)} maps to {size}; allowed are {LEVELS} maps and two rows and columns or more"
        )
    fraction = _fraction(maps)
    steps = [find_multiplier(1 / (n - 1), _STEP_BITS) for n in size]
    rows, columns = ((np.arange(n, dtype=np.int64) * m.first_m, m.first_n) for n, m in zip(size, steps, strict=True))
    levels = tuple(_level(boxes, x, output, fraction) for x in maps)
    limits = _limits(node, float(scale_of(boxes)))
    return PyramidLevelsParams(offset_of(boxes), limits, fraction, (rows, columns), levels, codes_of(output))


def run(params: PyramidLevelsParams, boxes: Array, maps: Sequence[Array]) -> tuple[Array, ...]:
    """Run PyramidROIAlign: quantized [S, 1, R, 4] and [S, 1, H, W, C] each -> quantized [S, R, rows, columns, C]."""
    values = boxes[:, 0].astype(np.int64) + params.box_offset
    sides = np.maximum(values[..., 2:] - values[..., :2], 0)
    level_of = np.searchsorted(params.limits, sides[..., 0] * sides[..., 1], side="right")
    size = tuple(len(places) for places, _ in params.steps)
    result = np.zeros((*values.shape[:2], *size, maps[0].shape[-1]), params.codes.dtype)
    for number, (level, x) in enumerate(zip(params.levels, maps, strict=True)):
        sample, row = np.nonzero(level_of == number)
        result[sample, row] = _pool(params, level, x[:, 0], sample, values[sample, row])
    return (result,)


def _fraction(maps: list[Tensor]) -> int:
    """F: the largest for which positions fit 15 bits and sums 31."""
    longest = max(max(x.shape[1:3]) for x in maps)
    largest = max(magnitude_of(x) + abs(offset_of(x)) for x in maps)
    of_positions = int(np.floor(np.log2(((1 << _POSITION_BITS) - 1) / max(longest - 1, 1))))
    return min(of_positions, int((_SUM_BITS - np.ceil(np.log2(largest + 1))) // 2))


def _limits(node: Node, box_scale: float) -> tuple[int, int, int]:
    number = node.attributes.real
    image = node.attributes.integer("image_height", IMAGE) * node.attributes.integer("image_width", IMAGE)
    sides = [number("canonical_size") * 2.0 ** (level - 4.5) for level in (3, 4, 5)]
    low, middle, high = (int(side * side / image * box_scale * box_scale + 0.5) for side in sides)
    return low, middle, high


def _level(boxes: Tensor, x: Tensor, output: Tensor, fraction: int) -> Level:
    height, width = x.shape[1], x.shape[2]
    unit = 2.0**fraction / float(scale_of(boxes))
    rows, columns = (find_multiplier(max(n - 1, 0.5) * unit, _POSITION_BITS) for n in (height, width))
    multiplier = find_multiplier(scale_of(output) / scale_of(x), bits_of(output))
    return Level(offset_of(x), (height, width), (rows, columns), Multiplier(multiplier.m, multiplier.n + 2 * fraction))


def _pool(params: PyramidLevelsParams, level: Level, x: Array, sample: Array, boxes: Integers) -> Array:
    """Return quantized values [B, rows, columns, C] of boxes int64[B, 4], of images x[sample]."""
    one = 1 << params.fraction
    places = []
    for axis, (side, rescale) in enumerate(zip(level.sides, level.positions, strict=True)):
        start, end = (rescale.apply(boxes[:, i]).astype(np.int64)[:, None] for i in (axis, axis + 2))
        steps, shift = params.steps[axis]
        point = start + (((end - start) * steps + (1 << (shift - 1))) >> shift)
        point = np.clip(point, 0, (side - 1) * one)
        low = point >> params.fraction
        places.append((low, np.minimum(low + 1, side - 1), point - low * one))
    (top, bottom, v), (left, right, u) = places
    total: Integers = np.zeros((), np.int64)
    for y, weight_y in ((top, one - v), (bottom, v)):
        for z, weight_x in ((left, one - u), (right, u)):
            corner = x[sample[:, None, None], y[:, :, None], z[:, None, :]].astype(np.int64) + level.offset
            total = total + corner * (weight_y[:, :, None] * weight_x[:, None, :])[..., None]
    return params.codes.requantize(total, level.rescale)

"""PyramidROIAlign: each box is sampled from the map that its area chooses (docs/aipu.md, 8).

Boxes in 0..1 go through `pyramid_crop`, or `pyramid_levels` where the node has a canonical_size.

Source: Compass Optimizer, ops/pyramidroi.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu import pyramid_crop, pyramid_levels
from tflq.interpreter.kernels.aipu.boxes import together
from tflq.interpreter.kernels.aipu.multiplier import (
    Multiplier,
    OutputCodes,
    codes_of,
    find_multiplier,
)
from tflq.interpreter.kernels.aipu.pyramid_crop import PyramidCropParams, is_normalised
from tflq.interpreter.kernels.aipu.pyramid_levels import PyramidLevelsParams, has_own_scales
from tflq.interpreter.kernels.aipu.roi import Positions, half_pixel_of, pool_samples, shifted
from tflq.interpreter.kernels.aipu.scales import bits_of, offset_of, scale_of

SIDES = (112, 224, 448)
LARGEST_POSITION = (1 << 16) - 1


@dataclass(frozen=True, eq=False)
class PyramidParams:
    """The params of one PyramidROIAlign on boxes in pixels; lists have one entry for each map.

    Attributes:
        fraction: bits of fraction of a position.
        half: half a pixel, or 0.
        is_half_pixel: whether boxes may be smaller than a pixel.
        samples: of each bin along y and x; 0 or less for one each pixel.
        size: bins along y and x.
        levels: raw areas at which the next map starts.
        inputs: M and N of spatial scale * 2^fraction / s_roi.
        rescales: M and N of s_y / s_map / samples.
        box_offset: zp of the boxes.
        map_offsets: zp of each map.
        codes: how the output is stored.
    """

    fraction: int
    half: int
    is_half_pixel: bool
    samples: tuple[int, int]
    size: tuple[int, int]
    levels: tuple[int, ...]
    inputs: tuple[Multiplier, ...]
    rescales: tuple[Multiplier, ...]
    box_offset: int
    map_offsets: tuple[int, ...]
    codes: OutputCodes


def lower(node: Node, operands: Operands) -> PyramidParams | PyramidCropParams | PyramidLevelsParams:
    """Decide levels, fraction and multipliers.

    Inputs: boxes [1, R, 4] (y0, x0, y1, x1), four maps [1, H, W, C]; output [R, OH, OW, C].

    Raises:
        UnsupportedError: another coordinate mode.
    """
    if has_own_scales(node):
        return pyramid_levels.lower(node, operands)
    if is_normalised(node):
        return pyramid_crop.lower(node, operands)
    boxes, output = operands.input(0), operands.output()
    maps = [operands.input(k) for k in range(1, len(operands.inputs))]
    value, spatial = node.attributes.integer, node.attributes.reals("spatial_scale_value")
    samples = node.attributes.integers("sample")
    fraction = int(np.floor(np.log2(65535 / (max(value("image_height"), value("image_width")) * max(spatial)))))
    inputs = [find_multiplier(np.float32(s * 2**fraction) / scale_of(boxes), 16) for s in spatial]
    count = samples[0] * samples[1] if min(samples) > 0 else 1
    rescales = [find_multiplier(scale_of(output) / (scale_of(m) * np.float32(count)), bits_of(output)) for m in maps]
    levels = tuple(int(float(side) ** 2 * float(scale_of(boxes)) ** 2 + 0.5) for side in SIDES)
    is_half_pixel = half_pixel_of(node)
    return PyramidParams(
        fraction,
        (1 << (fraction - 1)) * is_half_pixel,
        is_half_pixel,
        (samples[0], samples[1]),
        (value("resize_height"), value("resize_width")),
        levels,
        tuple(inputs),
        tuple(rescales),
        offset_of(boxes),
        tuple(offset_of(m) for m in maps),
        codes_of(output),
    )


def run(
    params: PyramidParams | PyramidCropParams | PyramidLevelsParams, boxes: Array, *maps: Array
) -> tuple[Array, ...]:
    """Run PyramidROIAlign: quantized [S, 1, R, 4], maps [S, 1, H, W, C] -> quantized [S, R, OH, OW, C]."""
    boxes, *maps_of = together(boxes, *maps)
    if isinstance(params, PyramidLevelsParams):
        return pyramid_levels.run(params, boxes, maps_of)
    if isinstance(params, PyramidCropParams):
        return pyramid_crop.run(params, boxes, maps_of)
    found = np.zeros((len(boxes), boxes.shape[2], *params.size, maps[0].shape[-1]), params.codes.dtype)
    for s, regions in enumerate(boxes[:, 0].astype(np.int64)):
        size = regions[:, 2:] - regions[:, :2]
        level = np.searchsorted(np.asarray(params.levels), size[:, 0] * size[:, 1], side="right")
        for number, features in enumerate(maps_of):
            chosen = np.flatnonzero(level == number)
            image = features[s, 0].astype(np.int64) + params.map_offsets[number]
            _fill(params, number, image, regions, chosen, found[s])
    return (found,)


def _fill(
    params: PyramidParams, number: int, image: Integers, regions: Integers, chosen: Integers, found: Array
) -> None:
    """Write the bins of the chosen regions; one that is empty keeps the code 0."""
    corners: Integers = regions[chosen] + params.box_offset
    edges = np.clip(params.inputs[number].apply(corners), 0, LARGEST_POSITION).astype(np.int64) - params.half
    starts, lengths = edges[:, :2], edges[:, 2:] - edges[:, :2]
    if not params.is_half_pixel:
        lengths = np.maximum(lengths, 1 << params.fraction)
    pixels = -(-lengths // (np.asarray(params.size) << params.fraction))
    counts = np.where(np.asarray(params.samples) > 0, np.asarray(params.samples), pixels)
    kept = (lengths != 0).all(axis=1) & (counts > 0).all(axis=1)
    for key in np.unique(counts[kept], axis=0):
        group = np.flatnonzero(kept & (counts == key).all(axis=1))
        found[chosen[group]] = _aligned(params, number, image, starts[group], lengths[group], key)


def _aligned(
    params: PyramidParams, number: int, image: Integers, starts: Integers, lengths: Integers, counts: Integers
) -> Array:
    """Return the quantized values of regions that have equal numbers of samples, [R, OH, OW, C]."""
    y, x = (
        _positions(params, axis, starts[:, axis], lengths[:, axis], int(counts[axis]), image.shape[axis])
        for axis in range(2)
    )
    total = pool_samples(image, y, x, shifted(params.fraction), False).astype(np.int64)
    rescale = params.rescales[number]
    late = Multiplier(rescale.m, rescale.n + params.fraction)
    if min(params.samples) <= 0:
        total = total * rescale.first_m // int(np.prod(counts))
        late = Multiplier(np.ones(1, np.int64), late.n)
    return params.codes.requantise(total, late)


def _positions(params: PyramidParams, axis: int, start: Integers, length: Integers, count: int, size: int) -> Positions:
    """Sample at start + step * i + grid * (2k + 1); outside of -1..size counts nothing, places are clamped."""
    step = length // params.size[axis]
    grid = step // (2 * count)
    bins, odd = np.arange(params.size[axis])[:, None], 2 * np.arange(count) + 1
    position = start[:, None, None] + step[:, None, None] * bins + grid[:, None, None] * odd
    low: Integers = position >> params.fraction
    far = position - (low << params.fraction)
    inside = (low >= -1) & (low <= size)
    near = np.where(inside, (1 << params.fraction) - far, 0)
    return Positions(np.clip(low, 0, size - 1), np.clip(low + 1, 0, size - 1), near, np.where(inside, far, 0))

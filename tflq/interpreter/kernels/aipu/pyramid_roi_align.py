"""PyramidROIAlign: each box is sampled from the map that its area chooses (docs/rules/aipu/boxes.md).

Boxes in pixels: samples as RoiAlign's. Boxes in 0..1 of a node with a canonical_size: pyramid_levels.py. Other boxes in
0..1: one bilinear sample a bin, the first and the last on the box's edges. Rows correspond to heights and columns to
widths; the Optimizer's own code swaps them, which is the same on square maps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers
from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu import pyramid_levels
from tflq.interpreter.kernels.aipu.boxes import together
from tflq.interpreter.kernels.aipu.multiplier import (
    Multiplier,
    OutputCodes,
    codes_of,
    find_multiplier,
)
from tflq.interpreter.kernels.aipu.pyramid_levels import PyramidLevelsParams, has_own_scales
from tflq.interpreter.kernels.aipu.roi import Positions, half_pixel_of, pool_samples, shifted_product
from tflq.interpreter.kernels.aipu.scales import bits_of, offset_of, scale_of
from tflq.interpreter.registry import Kernel

AREAS = (0.005978503007119795, 0.02391401202847918, 0.09565604811391672)
_INT32_MASK = 0x7FFFFFFF


@dataclass(frozen=True, eq=False)
class PyramidCropParams:
    """The params of one PyramidROIAlign on boxes in 0..1.

    Attributes:
        fraction: bits of a box's codes: RNE(log2(s_roi)).
        areas: products of height and width at which the next map starts.
        size: bins along y and x.
        box_offset: zp of the boxes.
        map_offsets: zp of each map.
        codes: Quantized values of the output.
    """

    fraction: int
    areas: tuple[int, ...]
    size: tuple[int, int]
    box_offset: int
    map_offsets: tuple[int, ...]
    codes: OutputCodes


def is_normalized(node: Node) -> bool:
    """Whether boxes are in 0..1 instead of pixels."""
    return node.attributes.boolean("proposal_normalized", False)


def lower_crop(node: Node, operands: Operands) -> PyramidCropParams:
    """Decide levels and fraction.

    Raises:
        UnsupportedError: maps of different scales; one bin along an axis.
    """
    boxes, maps = operands.input(0), [operands.input(k) for k in range(1, len(operands.inputs))]
    scales = [float(scale_of(m)) for m in maps]
    if len(set(scales)) > 1:
        listing = ", ".join(f"{s:g}" for s in scales)
        raise UnsupportedError(f"maps have the scales {listing}; allowed is one for all: give them one range")
    size = (node.attributes.integer("resize_height"), node.attributes.integer("resize_width"))
    if min(size) < 2:
        raise UnsupportedError(f"resize_height and resize_width are {size}; allowed is 2 or more")
    s = float(scale_of(boxes))
    fraction = int(np.rint(np.log2(s)))
    areas = tuple(round(area * s * s) for area in AREAS)
    offsets = tuple(offset_of(m) for m in maps)
    return PyramidCropParams(fraction, areas, size, offset_of(boxes), offsets, codes_of(operands.output()))


def run_crop(params: PyramidCropParams, boxes: Array, maps: Sequence[Array]) -> tuple[Array, ...]:
    """Run: quantized [S, 1, R, 4], maps [S, 1, H, W, C] -> quantized [S, R, OH, OW, C]."""
    result = np.zeros((len(boxes), boxes.shape[2], *params.size, maps[0].shape[-1]), params.codes.dtype)
    for s, regions in enumerate(boxes[:, 0].astype(np.int64) + params.box_offset):
        size = regions[:, 2:] - regions[:, :2]
        area = (size[:, 0] * size[:, 1]) & _INT32_MASK
        level = np.searchsorted(np.asarray(params.areas), area, side="right")
        for number, features in enumerate(maps):
            chosen = np.flatnonzero(level == number)
            image = features[s, 0].astype(np.int64) + params.map_offsets[number]
            codes = _crop_bins(params, image, regions[chosen])
            result[s, chosen] = np.clip(codes, params.codes.minimum, params.codes.maximum)
    return (result,)


def _crop_bins(params: PyramidCropParams, image: Integers, regions: Integers) -> Integers:
    """Return code + zp of each bin: tl + fy * (bl - tl) + fx * (tr - tl) + fy * fx * (tl + br - tr - bl), floored."""
    q = params.fraction
    (top, bottom, fy), (left, right, fx) = (
        _places(params, axis, regions[:, axis], regions[:, 2 + axis], image.shape[axis]) for axis in range(2)
    )
    top, bottom, fy = (v[:, :, None] for v in (top, bottom, fy))
    left, right, fx = (v[:, None, :] for v in (left, right, fx))
    tl, tr, bl, br = image[top, left], image[top, right], image[bottom, left], image[bottom, right]
    fy, fx = fy[..., None], fx[..., None]
    both = (fy * fx) >> q
    value: Integers = ((tl + br - tr - bl) * both + (tl << q) + (tr - tl) * fx + (bl - tl) * fy) >> q
    return value


def _places(
    params: PyramidCropParams, axis: int, start: Integers, end: Integers, size: int
) -> tuple[Integers, Integers, Integers]:
    """Return the places before and after, and the fraction, of each bin: (size - 1) * start + i * step, clamped."""
    bins, one = params.size[axis], (1 << params.fraction) - 1
    step = np.trunc((end - start) * (size - 1) * 256 / (bins - 1)).astype(np.int64) >> 8
    position = np.clip((size - 1) * start[:, None] + np.arange(bins) * step[:, None], 0, (size - 1) * one)
    return position >> params.fraction, (position + one) >> params.fraction, position & one


SIDES = (112, 224, 448)
LARGEST_POSITION = (1 << 16) - 1


@dataclass(frozen=True, eq=False)
class PyramidParams:
    """The params of one PyramidROIAlign on boxes in pixels; lists have one entry for each map.

    Attributes:
        fraction: bits of fraction of a position.
        half: half a pixel, or 0.
        is_half_pixel: whether boxes may be smaller than a pixel.
        samples: Number of samples of each bin along y and x; 0 or less for one each pixel.
        size: bins along y and x.
        levels: raw areas at which the next map starts.
        inputs: M and N of spatial scale * 2^fraction / s_roi.
        rescales: M and N of s_y / s_map / samples.
        box_offset: zp of the boxes.
        map_offsets: zp of each map.
        codes: Quantized values of the output.
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
    if is_normalized(node):
        return lower_crop(node, operands)
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
        return run_crop(params, boxes, maps_of)
    result = np.zeros((len(boxes), boxes.shape[2], *params.size, maps[0].shape[-1]), params.codes.dtype)
    for s, regions in enumerate(boxes[:, 0].astype(np.int64)):
        size = regions[:, 2:] - regions[:, :2]
        level = np.searchsorted(np.asarray(params.levels), size[:, 0] * size[:, 1], side="right")
        for number, features in enumerate(maps_of):
            chosen = np.flatnonzero(level == number)
            image = features[s, 0].astype(np.int64) + params.map_offsets[number]
            _fill(params, number, image, regions, chosen, result[s])
    return (result,)


def _fill(
    params: PyramidParams, number: int, image: Integers, regions: Integers, chosen: Integers, result: Array
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
        result[chosen[group]] = _align_regions(params, number, image, starts[group], lengths[group], key)


def _align_regions(
    params: PyramidParams, number: int, image: Integers, starts: Integers, lengths: Integers, counts: Integers
) -> Array:
    """Return the quantized values of regions that have equal numbers of samples, [R, OH, OW, C]."""
    y, x = (
        _positions(params, axis, starts[:, axis], lengths[:, axis], int(counts[axis]), image.shape[axis])
        for axis in range(2)
    )
    total = pool_samples(image, y, x, shifted_product(params.fraction), False).astype(np.int64)
    rescale = params.rescales[number]
    late = Multiplier(rescale.m, rescale.n + params.fraction)
    if min(params.samples) <= 0:
        total = total * rescale.first_m // int(np.prod(counts))
        late = Multiplier(np.ones(1, np.int64), late.n)
    return params.codes.requantize(total, late)


def _positions(params: PyramidParams, axis: int, start: Integers, length: Integers, count: int, size: int) -> Positions:
    """Sample at start + step * i + grid * (2k + 1); samples outside of -1..size count as 0, places are clamped."""
    step = length // params.size[axis]
    grid = step // (2 * count)
    bins, odd = np.arange(params.size[axis])[:, None], 2 * np.arange(count) + 1
    position = start[:, None, None] + step[:, None, None] * bins + grid[:, None, None] * odd
    low: Integers = position >> params.fraction
    far = position - (low << params.fraction)
    inside = (low >= -1) & (low <= size)
    near = np.where(inside, (1 << params.fraction) - far, 0)
    return Positions(np.clip(low, 0, size - 1), np.clip(low + 1, 0, size - 1), near, np.where(inside, far, 0))


KERNELS = {
    "pyramid_roi_align": Kernel(lower, run,
        "PyramidROIAlign: each box is sampled from the map that its area chooses (docs/rules/aipu/boxes.md)",
        "Compass Optimizer, ops/pyramidroi.py; whitepaper ACN-AWP-1002A, 5.1.3.4"),
}  # fmt: skip

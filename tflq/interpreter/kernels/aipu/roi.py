"""Regions of interest of a feature map: MaxRoiPool, RoiAlign, bilinear samples for PyramidROIAlign.

Source: docs/rules/aipu/boxes.md.

Source: Compass Optimizer, ops/maxroipooling.py, roialign.py and pyramidroi.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tflq.arrays import Doubles, Integers
from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.boxes import together
from tflq.interpreter.kernels.aipu.imported import is_imported
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, OutputCodes, codes_of, find_multiplier
from tflq.interpreter.kernels.aipu.scales import bits_of, offset_of, scale_of
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
    """Positions of the samples of each bin along one axis; all int64[R, bins, n].

    Attributes:
        low: place before the sample.
        high: place after the sample.
        near: Part of the weight of the place before.
        far: Part of the weight of the place after.
    """

    low: Integers
    high: Integers
    near: Integers
    far: Integers


def truncate(x: Array) -> Integers:
    """Return integers, rounded toward zero."""
    whole: Integers = np.trunc(x).astype(np.int64)
    return whole


def pool_samples(image: Integers, y: Positions, x: Positions, weigh: Weigh, is_maximum: bool) -> Array:
    """Return the sum over all samples and corners of weight * value, or the largest of these products.

    A place before the map counts from its end, as the Optimizer's flat offset does.

    Args:
        image: quantized values + zp, int64[H, W, C].
        y: samples along y.
        x: samples along x.
        weigh: the product of two parts.
        is_maximum: the largest product instead of the sum.

    Returns:
        [R, bins of y, bins of x, C], integers.
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


def shifted_product(bits: int) -> Weigh:
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
    result = np.zeros((*boxes.shape[:2], *params.pooled, features.shape[-1]), features.dtype)
    limits = [_bins(params, axis, boxes, features.shape[2 + axis]) for axis in range(2)]
    for place in np.ndindex(*boxes.shape[:2]):
        image = features[place[0], 0]
        rows, columns = (list(zip(first[place], last[place], strict=True)) for first, last in limits)
        for i, (top, bottom) in enumerate(rows):
            for j, (left, right) in enumerate(columns):
                if top < bottom and left < right:
                    result[place][i, j] = image[top:bottom, left:right].max(axis=(0, 1))
    return (result,)


def _bins(params: MaxRoiPoolParams, axis: int, boxes: Integers, size: int) -> tuple[Integers, Integers]:
    """Return the start and end of each bin, int64[S, R, bins]."""
    corners = (boxes[..., axis::2] * params.spatial[axis] + (1 << (FRACTION - 1))) >> FRACTION
    start = corners[..., :1]
    length, bins = np.maximum(corners[..., 1:] - start + 1, 1), params.pooled[axis]
    i = np.arange(bins)
    return np.clip(start + i * length // bins, 0, size), np.clip(start - (-(i + 1) * length // bins), 0, size)


ALIGN_FRACTION = 10
STEP_BITS = 12
AVERAGE, MAXIMUM = "AVG", "MAX"
ONE = Multiplier(np.ones(1, np.int64), np.zeros(1, np.int64))


@dataclass(frozen=True, eq=False)
class RoiAlignParams:
    """The params of one RoiAlign; pairs are for y and x.

    Attributes:
        is_maximum: MAX instead of AVG.
        is_half_pixel: whether boxes move by half a pixel and may be smaller than one.
        samples: Number of samples of each bin; if one is 0 or less, the number of pixels of the bin.
        pooled: bins.
        spatial: RNE(spatial scale * 2^10).
        rescale: M and N of 1 / samples of a bin.
        regions: M and N of 1 / s_roi.
        steps: M and N of 1 / bins.
        grids: M and N of 1 / (2 * samples).
        offsets: zp of the features and of the boxes.
        codes: Quantized values of the output, with the zp of the features.
    """

    is_maximum: bool
    is_half_pixel: bool
    samples: tuple[int, int]
    pooled: tuple[int, int]
    spatial: tuple[int, int]
    rescale: Multiplier
    regions: Multiplier
    steps: tuple[Multiplier, Multiplier]
    grids: tuple[Multiplier, Multiplier]
    offsets: tuple[int, int]
    codes: OutputCodes

    @property
    def is_adaptive(self) -> bool:
        """Whether the number of samples follows from the box."""
        return min(self.samples) <= 0


def _lower_roi_align(node: Node, operands: Operands) -> RoiAlignParams:
    """Decide the multipliers, with 10 bits of fraction in coordinates.

    Inputs: features [B, H, W, C], boxes [R, 5] (batch, y0, x0, y1, x1) in pixels of the image. Output [R, PH, PW, C].

    Raises:
        UnsupportedError: another method or coordinate mode.
    """
    is_half_pixel, method = half_pixel_of(node), require_choice(node, "method", (AVERAGE, MAXIMUM))
    x, rois, output = operands.input(0), operands.input(1), operands.output()
    bits = bits_of(output)
    pooled, samples = _pair(node, "pooled_shape"), _pair(node, "sample")
    scales = np.asarray(node.attributes["spatial_scale_value"], np.float32)
    fraction = np.float32(1 if is_imported(node) else 1 << ALIGN_FRACTION)
    spatial = tuple(int(v) for v in np.rint(scales * fraction))
    rescale = find_multiplier(1 / np.prod([max(1, n) for n in samples]), bits)
    regions = find_multiplier(np.float32(1) / scale_of(rois), bits_of(rois))
    step_bits = max(STEP_BITS, bits)
    steps = [find_multiplier(1 / n, step_bits) for n in pooled]
    grids = [find_multiplier(1 / (2 * n), step_bits) if n > 0 else ONE for n in samples]
    return RoiAlignParams(
        method == MAXIMUM,
        is_half_pixel,
        samples,
        pooled,
        (spatial[0], spatial[1]),
        rescale,
        regions,
        (steps[0], steps[1]),
        (grids[0], grids[1]),
        (offset_of(x), offset_of(rois)),
        replace(codes_of(output), offset=offset_of(x)),
    )


def _run_roi_align(params: RoiAlignParams, features: Array, rois: Array) -> tuple[Array, ...]:
    """Run RoiAlign: quantized [S, B, H, W, C], [S, R, 5] -> quantized [S, R, PH, PW, C].

    Boxes that end before they start, or beyond the map, yield 0.
    """
    features, rois = together(features, rois)
    result = np.zeros((*rois.shape[:2], *params.pooled, features.shape[-1]))
    for s in range(len(rois)):
        maps, boxes = (v[s].astype(np.int64) + zp for v, zp in zip((features, rois), params.offsets, strict=True))
        starts, ends = _edges(params, boxes[:, 1:3]), _edges(params, boxes[:, 3:])
        lengths = ends - starts if params.is_half_pixel else np.maximum(ends - starts, 1 << ALIGN_FRACTION)
        counts = _counts(params, lengths)
        kept = (starts <= ends).all(axis=1) & (ends <= np.asarray(maps.shape[1:3]) << ALIGN_FRACTION).all(axis=1)
        kept &= (boxes[:, 0] >= 0) & (boxes[:, 0] < len(maps)) & (counts > 0).all(axis=1)
        keys = np.concatenate([boxes[:, :1], counts], axis=1)
        for key in np.unique(keys[kept], axis=0):
            group = np.flatnonzero(kept & (keys == key).all(axis=1))
            result[s, group] = _align_boxes(params, maps[key[0]], starts[group], lengths[group], key[1:])
    return (params.codes.store(result),)


def _edges(params: RoiAlignParams, corners: Integers) -> Integers:
    """Return positions on the map with 10 bits of fraction, int64[R, 2].

    A fixed number of samples loses the fraction of a coordinate before the spatial scale, as the Optimizer does.
    """
    spatial, half = np.asarray(params.spatial), (1 << (ALIGN_FRACTION - 1)) * params.is_half_pixel
    m, n = params.regions.first_m, params.regions.first_n
    if params.is_adaptive:
        edges = truncate(corners * spatial * m * 2.0**-n)
    else:
        edges = truncate(corners * m * 2.0**-n) * spatial
    moved: Integers = edges - half
    return moved


def _counts(params: RoiAlignParams, lengths: Integers) -> Integers:
    """Return the samples of a bin along y and x, int64[R, 2]: as stated, or one for each pixel begun."""
    pixels = -(-lengths // (np.asarray(params.pooled) << ALIGN_FRACTION))
    counts: Integers = np.where(np.asarray(params.samples) > 0, np.asarray(params.samples), pixels)
    return counts


def _align_boxes(
    params: RoiAlignParams, image: Integers, starts: Integers, lengths: Integers, counts: Integers
) -> Doubles:
    """Return the bins of boxes on one map that have equal numbers of samples, [R, PH, PW, C], without zp."""
    place = _adaptive_positions if params.is_adaptive else _fixed_positions
    y, x = (
        place(params, axis, starts[:, axis], lengths[:, axis], int(counts[axis]), image.shape[axis])
        for axis in range(2)
    )
    weigh = _rounded_product if params.is_adaptive else shifted_product(ALIGN_FRACTION)
    total = pool_samples(image, y, x, weigh, params.is_maximum).astype(np.float64)
    divisor = 1
    if params.is_adaptive:
        divisor = int(np.prod(counts)) ** (1 if params.is_maximum else 2) * int(np.prod(params.pooled))
    scaled = total * params.rescale.first_m * 2.0 ** -(params.rescale.first_n + ALIGN_FRACTION)
    rounded: Doubles = np.rint(scaled / divisor)
    return rounded


def _fixed_positions(
    params: RoiAlignParams, axis: int, start: Integers, length: Integers, count: int, size: int
) -> Positions:
    """Sample at start + step * i + grid * (2k + 1), low = p >> 10; the end of the axis has no neighbor after it."""
    steps, grids = params.steps[axis], params.grids[axis]
    step = truncate(length * steps.first_m * 2.0**-steps.first_n)
    grid = truncate(step * grids.first_m * 2.0**-grids.first_n)
    bins, odd = np.arange(params.pooled[axis])[:, None], 2 * np.arange(count) + 1
    position = (start[:, None, None] + step[:, None, None] * bins) + grid[:, None, None] * odd
    low = position >> ALIGN_FRACTION
    return _limit_positions(low, position - (low << ALIGN_FRACTION), 1 << ALIGN_FRACTION, size, 1)


def _adaptive_positions(
    params: RoiAlignParams, axis: int, start: Integers, length: Integers, count: int, size: int
) -> Positions:
    """Sample at whole + rest / D exactly, D = bins * n * 2^11; the parts of a weight are halved.

    whole = step * i + grid * k counts whole pixels; rest is the remainder, rounded toward zero.
    """
    pooled = params.pooled[axis]
    half = pooled * count << ALIGN_FRACTION
    row = length[:, None, None]
    step, grid = row // (pooled << ALIGN_FRACTION), row // half
    step_rest, grid_rest = row - step * (pooled << ALIGN_FRACTION), row - grid * half
    bins, k = np.arange(pooled)[:, None], np.arange(count)
    rest: Integers = 2 * count * (step_rest * bins + start[:, None, None] * pooled)
    rest = rest + half * grid + grid_rest * (2 * k + 1)
    carried = truncate(rest / (2 * half))
    low: Integers = step * bins + grid * k + carried
    return _limit_positions(low, rest - carried * 2 * half, 2 * half, size, 2)


def _limit_positions(low: Integers, fraction: Integers, one: int, size: int, halving: int) -> Positions:
    is_last = low >= size - 1
    near, far = np.where(is_last, size - 1, low), np.where(is_last, size - 1, low + 1)
    part = np.where(is_last, 0, fraction)
    return Positions(near, far, truncate((one - part) / halving), truncate(part / halving))


def _rounded_product(a: Integers, b: Integers) -> Array:
    """Return RNE(a * b * 2^-10), the product rounded to float32 first as the Optimizer's is."""
    weight: Integers = np.rint((a * b).astype(np.float32) * np.float32(2.0**-ALIGN_FRACTION)).astype(np.int64)
    return weight


def _pair(node: Node, key: str) -> tuple[int, int]:
    values = node.attributes.integers(key)
    return values[0], values[1]


KERNELS = {
    "max_roi_pool": Kernel(_lower_max_roi_pool, _run_max_roi_pool,
        "the largest quantized value of each bin of a box; an empty bin holds the code 0",
        "Compass Optimizer, ops/maxroipooling.py; docs/rules/aipu/boxes.md"),
    "roi_align": Kernel(_lower_roi_align, _run_roi_align,
        "bilinear samples of each bin, averaged or their maximum",
        "Compass Optimizer, ops/roialign.py; docs/rules/aipu/boxes.md"),
}  # fmt: skip

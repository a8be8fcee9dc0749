"""PyramidROIAlign on boxes in 0..1: one bilinear sample a bin, the first and the last on the box's edges.

Rows go with heights and columns with widths; the Optimizer's own code swaps them, which is the same on square maps.
Source: Compass Optimizer, ops/pyramidroi.py; whitepaper ACN-AWP-1002A, 5.1.3.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers
from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.multiplier import OutputCodes, codes_of
from tflq.interpreter.kernels.aipu.scales import offset_of, scale_of

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
        codes: how the output is stored.
    """

    fraction: int
    areas: tuple[int, ...]
    size: tuple[int, int]
    box_offset: int
    map_offsets: tuple[int, ...]
    codes: OutputCodes


def is_normalised(node: Node) -> bool:
    """Whether boxes are in 0..1 instead of pixels."""
    return node.attributes.boolean("proposal_normalized", False)


def lower(node: Node, operands: Operands) -> PyramidCropParams:
    """Decide levels and fraction.

    Raises:
        UnsupportedError: maps of different scales; one bin along an axis.
    """
    boxes, maps = operands.input(0), [operands.input(k) for k in range(1, len(operands.inputs))]
    scales = [float(scale_of(m)) for m in maps]
    if len(set(scales)) > 1:
        found = ", ".join(f"{s:g}" for s in scales)
        raise UnsupportedError(f"maps have the scales {found}; allowed is one for all: give them one range")
    size = (node.attributes.integer("resize_height"), node.attributes.integer("resize_width"))
    if min(size) < 2:
        raise UnsupportedError(f"resize_height and resize_width are {size}; allowed is 2 or more")
    s = float(scale_of(boxes))
    fraction = int(np.rint(np.log2(s)))
    areas = tuple(round(area * s * s) for area in AREAS)
    offsets = tuple(offset_of(m) for m in maps)
    return PyramidCropParams(fraction, areas, size, offset_of(boxes), offsets, codes_of(operands.output()))


def run(params: PyramidCropParams, boxes: Array, maps: Sequence[Array]) -> tuple[Array, ...]:
    """Run: quantized [S, 1, R, 4], maps [S, 1, H, W, C] -> quantized [S, R, OH, OW, C]."""
    found = np.zeros((len(boxes), boxes.shape[2], *params.size, maps[0].shape[-1]), params.codes.dtype)
    for s, regions in enumerate(boxes[:, 0].astype(np.int64) + params.box_offset):
        size = regions[:, 2:] - regions[:, :2]
        area = (size[:, 0] * size[:, 1]) & _INT32_MASK
        level = np.searchsorted(np.asarray(params.areas), area, side="right")
        for number, features in enumerate(maps):
            chosen = np.flatnonzero(level == number)
            image = features[s, 0].astype(np.int64) + params.map_offsets[number]
            codes = _cropped(params, image, regions[chosen])
            found[s, chosen] = np.clip(codes, params.codes.minimum, params.codes.maximum)
    return (found,)


def _cropped(params: PyramidCropParams, image: Integers, regions: Integers) -> Integers:
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
    """Return the places in front and behind and the fraction of each bin: (size - 1) * start + i * step, clamped."""
    bins, one = params.size[axis], (1 << params.fraction) - 1
    step = np.trunc((end - start) * (size - 1) * 256 / (bins - 1)).astype(np.int64) >> 8
    position = np.clip((size - 1) * start[:, None] + np.arange(bins) * step[:, None], 0, (size - 1) * one)
    return position >> params.fraction, (position + one) >> params.fraction, position & one

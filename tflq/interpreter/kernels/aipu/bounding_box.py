"""BoundingBox: boxes in 0..1 moved by deltas and clamped to 0..1 (docs/rules/aipu/boxes.md)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Integers
from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands, Tensor
from tflq.interpreter.kernels.aipu.boxes import INT16, delta_table, exponential, together
from tflq.interpreter.kernels.aipu.multiplier import Multiplier, find_multiplier
from tflq.interpreter.kernels.aipu.scales import bits_of, offset_of, scale_of
from tflq.interpreter.kernels.aipu.tables import Table
from tflq.interpreter.registry import Kernel

DEVIATIONS = (10.0, 10.0, 5.0, 5.0)
LARGEST_GROWTH = 3276.0
OUTPUT_SCALE = 32767.0
_OUTPUT_BITS = 14
_LATE_SHIFT = 16
_TABLES = ("grow_y", "grow_x")


@dataclass(frozen=True, eq=False)
class BoundingBoxParams:
    """The params of one BoundingBox; pairs are for y and x.

    Attributes:
        offsets: zp of boxes and deltas.
        moves: M and N of 1 / (s_d * deviation).
        growths: tables of exp(d / deviation).
        halves: M and N of half of 1 / the scale of a table.
        output: M and N of 32767 / s_roi.
        early_shift: Bits that size * M loses before the product with a delta.
        largest_center: limit of a center.
        largest_half: limit of half a size.
    """

    offsets: tuple[int, int]
    moves: tuple[Multiplier, Multiplier]
    growths: tuple[Table, Table]
    halves: tuple[Multiplier, Multiplier]
    output: Multiplier
    early_shift: int
    largest_center: int
    largest_half: int


def lower(node: Node, operands: Operands) -> BoundingBoxParams:
    """Decide tables, multipliers and shifts.

    Inputs: boxes [..., 4] (y0, x0, y1, x1) in 0..1, deltas [..., 4] (dy, dx, dh, dw); output int16[..., 4] at 32767. If
    the growth of a delta exceeds 3276, the range of deltas is taken as ending there.

    Raises:
        UnsupportedError: another order of coordinates; deltas or boxes so coarse that no shift is left.
    """
    if node.attributes.text("coordinate_order", "YX") != "YX":
        raise UnsupportedError(f"coordinate_order={node.attributes.text('coordinate_order')}; allowed is YX")
    rois, deltas = operands.input(0), operands.input(1)
    deviations = node.attributes.reals("std_div", DEVIATIONS)
    moves = [find_multiplier(np.float32(1) / (scale_of(deltas) * np.float32(d)), 16) for d in deviations[:2]]
    reach, scale = _reach(deltas, deviations[2:])
    tables, halves = [], []
    for key, deviation in zip(_TABLES, deviations[2:], strict=True):
        s = _table_scale(float(np.float32(reach / scale / np.float32(deviation))))
        table = delta_table(node, key, deltas, exponential, deviation, s, float(scale))
        tables.append(Table(np.maximum(table.entries, 0), table.lowest, table.shift, *INT16))
        multiplier = find_multiplier(np.float32(1) / s, 16)
        halves.append(Multiplier(multiplier.m, multiplier.n + 1))
    output = find_multiplier(np.float32(OUTPUT_SCALE) / scale_of(rois), _OUTPUT_BITS)
    if output.first_n < 0:
        raise UnsupportedError(
            f"boxes at scale {scale_of(rois):g}, which reach {((1 << bits_of(rois)) - 1) / scale_of(rois):g}, leave no "
            f"shift; corners are parts of the image: give boxes of 0 to 1"
        )
    widths = bits_of(rois) + bits_of(deltas)
    early = widths + 17 - 32 + (offset_of(deltas) != 0)
    if min(f.first_n for f in moves) <= early:
        raise UnsupportedError(f"deltas at scale {scale_of(deltas):g} leave no shift; allowed is a wider range")
    return BoundingBoxParams(
        (offset_of(rois), offset_of(deltas)),
        (moves[0], moves[1]),
        (tables[0], tables[1]),
        (halves[0], halves[1]),
        output,
        early,
        1 << (widths - 1),
        (1 << bits_of(rois)) - 1,
    )


def run(params: BoundingBoxParams, rois: Array, deltas: Array) -> tuple[Array, ...]:
    """Run BoundingBox: quantized [S, ..., 4], [S, ..., 4] -> int16[S, ..., 4].

    c = ((d * ((size * M0) >> k) + half) >> (N0 - k)) + floor((v0 + v1) / 2);
    hs = (size * ((t * M2) >> 16)) >> (N2 - 16); corners ((c -+ hs) * M4 + half) >> N4, clamped to 0..32767.
    """
    rois, deltas = together(rois, deltas)
    corners, moves = rois.astype(np.int64) + params.offsets[0], deltas.astype(np.int64) + params.offsets[1]
    near, far = [], []
    for axis in range(2):
        size, total = corners[..., 2 + axis] - corners[..., axis], corners[..., 2 + axis] + corners[..., axis]
        center = _move_center(params, axis, size, moves[..., axis]) + (total >> 1)
        center = np.clip(center, -params.largest_center, params.largest_center - 1)
        half = _half(params, axis, size, deltas[..., 2 + axis])
        near.append(center - half)
        far.append(center + half)
    m, n = params.output.first_m, params.output.first_n
    rounding = 1 << (n - 1) if n > 1 else 0
    codes = (np.stack([*near, *far], axis=-1) * m + rounding) >> n
    return (np.clip(codes, 0, INT16[1]).astype(np.int16),)


def _move_center(params: BoundingBoxParams, axis: int, size: Integers, delta: Integers) -> Integers:
    multiplier, early = params.moves[axis], params.early_shift
    late = multiplier.first_n - early
    moved: Integers = (delta * ((size * multiplier.first_m) >> early) + (1 << (late - 1))) >> late
    return moved


def _half(params: BoundingBoxParams, axis: int, size: Integers, delta: Array) -> Integers:
    multiplier = params.halves[axis]
    growth = (params.growths[axis].lookup(delta) * multiplier.first_m) >> _LATE_SHIFT
    half: Integers = np.clip((size * growth) >> (multiplier.first_n - _LATE_SHIFT), 0, params.largest_half)
    return half


def _reach(deltas: Tensor, deviations: tuple[float, ...]) -> tuple[np.float32, np.float32]:
    """Return the largest delta in quantized values, and the scale at which its growth is 3276 at most."""
    reach = np.float32((1 << (bits_of(deltas) - 1)) - 1 + offset_of(deltas))
    logarithm = float(np.log(np.float32(LARGEST_GROWTH)))
    limits = [logarithm * deviation for deviation in deviations]
    if any(reach > np.float32(scale_of(deltas) * np.float32(limit)) for limit in limits):
        return reach, np.float32(reach / np.float32(max(limits)))
    return reach, scale_of(deltas)


def _table_scale(exponent: float) -> np.float32:
    """Return the scale of the largest growth in 16 bits, symmetric, signed and restricted."""
    s: np.float32 = np.float32(INT16[1]) / np.float32(np.exp(exponent))
    return s


KERNELS = {
    "bounding_box": Kernel(lower, run,
        "BoundingBox: boxes in 0..1 moved by deltas and clamped to 0..1 (docs/rules/aipu/boxes.md)",
        "Compass Optimizer, ops/boundingbox.py and multibox_transform_Loc.py"),
}  # fmt: skip

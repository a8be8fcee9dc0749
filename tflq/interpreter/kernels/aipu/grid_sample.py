"""GridSample: values of an image at places that another tensor names, nearest or between pixels.

Source: docs/rules/aipu/operators.md.

A place p of -1..1 has the coordinate d(p) on an axis of n pixels: (p + 1) / 2 * (n - 1) with align_corners, else ((p +
1) * n - 1) / 2.

Grids of more than 8 bits: q = clamp16(((g + zp_g) * M >> N) + (n - 1) * 2^(F - 1)), F = 16 - bits of d over all codes,
M / 2^N of 2^F * size / s_g / 2 in 15 bits, size = n, less 1 with align_corners. NEAREST: the pixel
clamp16(q + 2^(F - 1)) >> F. BILINEAR: pixel q >> F, t = q - (pixel << F), a + ((b - a) * t >> F) along x, y, z.
Grids of 8 bits: pixel and t by tables of d, t of 10 bits cut toward zero.
Outside: the nearest pixel (BORDER), or 0, which is the code -zp (ZEROS).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tflq.arrays import Integers, Singles
from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.imported import imported_multiplier, imported_numbers, is_imported
from tflq.interpreter.kernels.aipu.multiplier import WIDEST, Multiplier, find_multipliers
from tflq.interpreter.kernels.aipu.scales import is_signed, is_wide, offset_of, scale_of, type_limits
from tflq.interpreter.operands.checks import require_choice
from tflq.interpreter.registry import Kernel

Number = TypeVar("Number", np.int64, np.float32)

METHODS, PADDINGS = ("BILINEAR", "NEAREST", "LINEAR"), ("ZEROS", "BORDER")
_BITS = 16
_LOWEST, _HIGHEST = -(1 << (_BITS - 1)), (1 << (_BITS - 1)) - 1
_TABLE_FRACTION = 10
PIXELS, FRACTIONS = ("lutx", "luty"), ("x_terp", "y_terp")
"""Tables of grids of 8 bits: pixels, and t of BILINEAR."""
SHIFTS = ("coordinate_x_shift", "coordinate_y_shift", "coordinate_z_shift")


@dataclass(frozen=True, eq=False)
class GridSampleParams:
    """The params of one layer; axes as a place has them: x, y, z.

    Attributes:
        is_nearest: whether no pixels are mixed.
        has_border: Whether places outside the image read the nearest pixel.
        offsets: zp of image and grid.
        sizes: Sizes of the image.
        rescale: M and N of each axis.
        fractions: F of each axis.
        pixels: tables of pixels, of a grid of 8 bits.
        parts: tables of t.
        limits: smallest and largest quantized value.
    """

    is_nearest: bool
    has_border: bool
    offsets: tuple[int, int]
    sizes: tuple[int, ...]
    rescale: Multiplier
    fractions: Integers
    pixels: tuple[Integers, ...]
    parts: tuple[Integers, ...]
    limits: tuple[int, int]


def lower(node: Node, operands: Operands) -> GridSampleParams:
    """Decide M, N and F of each axis, or the tables.

    Raises:
        UnsupportedError: another method or padding; a grid of unsigned 8 bits or of volumes (the Optimizer writes no
            tables for them); places that exceed 15 bits.
    """
    x, grid, output = operands.input(0), operands.input(1), operands.output()
    is_nearest = require_choice(node, "method", METHODS) == "NEAREST"
    has_border = require_choice(node, "padding_mode", PADDINGS) == "BORDER"
    aligned = node.attributes.boolean("align_corners")
    sizes = tuple(x.shape[-2:0:-1])
    low, high = type_limits(grid)
    codes = np.arange(low, high + 1).astype(np.float32)
    real = ((codes + np.float32(offset_of(grid))) * (np.float32(1) / scale_of(grid))).astype(np.float32)
    places = [denormalize(real, n, aligned) for n in sizes]
    pixels: tuple[Integers, ...] = ()
    parts, multiplier = pixels, None
    if not is_wide(grid):
        if not is_signed(grid) or len(sizes) > 2:
            raise UnsupportedError("a grid of 8 bits must be signed, of images; give it activation_bits=16")
        pixels, parts = _tables(node, places, sizes, (is_nearest, has_border, aligned))
        fractions = np.full(2, _TABLE_FRACTION, np.int64)
        rescale = Multiplier(np.ones(2, np.int64), np.zeros(2, np.int64))
    else:
        fractions = np.array([_BITS - _bits(d) for d in places], np.int64)
        if is_imported(node):
            given = [imported_numbers(node, key) for key in SHIFTS[: len(sizes)]]
            fractions = np.array([int(f[0]) for f in given if f is not None], np.int64)
            multiplier = imported_multiplier(node)
        if fractions.min(initial=_BITS) < 1:
            raise UnsupportedError("places of the grid beyond 15 bits; allowed are images and grids of less")
        ratios = [np.float32(2.0**f) * np.float32(n - aligned) for f, n in zip(fractions, sizes, strict=True)]
        each = np.array([r / scale_of(grid) / np.float32(2) for r in ratios], np.float32)
        rescale = multiplier or _join_multipliers([find_multipliers(one[None], WIDEST) for one in each])
    offsets = (offset_of(x), offset_of(grid))
    limits = type_limits(output)
    return GridSampleParams(is_nearest, has_border, offsets, sizes, rescale, fractions, pixels, parts, limits)


def _join_multipliers(multipliers: list[Multiplier]) -> Multiplier:
    return Multiplier(np.concatenate([f.m for f in multipliers]), np.concatenate([f.n for f in multipliers]))


def denormalize(p: Singles, n: int, aligned: bool) -> Singles:
    """Return d(p), every step rounded to float32."""
    one, two, size = np.float32(1), np.float32(2), np.float32(n)
    place: Singles = ((p + one) / two * (size - one) if aligned else ((p + one) * size - one) / two).astype(np.float32)
    return place


def _bits(values: Singles) -> int:
    """Return the bits of the smallest signed type that represents all values."""
    return next(b for b in range(64) if -(2.0 ** (b - 1)) <= values.min() and values.max() <= 2.0 ** (b - 1) - 1)


def _tables(
    node: Node, places: list[Singles], sizes: tuple[int, ...], modes: tuple[bool, bool, bool]
) -> tuple[tuple[Integers, ...], tuple[Integers, ...]]:
    """Return pixels and t of each axis by the grid's code."""
    is_nearest, has_border, aligned = modes
    pixels, parts = list[Integers](), list[Integers]()
    for place, n, pixel_key, part_key in zip(places, sizes, PIXELS, FRACTIONS, strict=True):
        d = np.rint(place) if is_nearest else place
        if has_border:
            first, last = (np.float32(0), np.float32(n - 1)) if aligned else (np.float32(-0.5), np.float32(n - 0.5))
            d = np.where(d < first, np.float32(0), np.where(d > last, np.float32(n - 1), d))
        whole = np.floor(d)
        given, part = imported_numbers(node, pixel_key), imported_numbers(node, part_key)
        pixels.append(whole.astype(np.int64) if given is None else given)
        cut = ((d - whole) * np.float32(1 << _TABLE_FRACTION)).astype(np.float32).astype(np.int64)
        parts.append(cut if part is None else part)
    return tuple(pixels), tuple(parts)


def run(params: GridSampleParams, x: Array, grid: Array) -> tuple[Array, ...]:
    """Run GridSample: quantized [S, N, (Z,) Y, X, C], [S, N, (Z',) Y', X', 2 or 3] -> [S, N, (Z',) Y', X', C]."""
    count = max(len(x), len(grid))
    images, wanted = (np.broadcast_to(v, (count, *v.shape[1:])).astype(np.int64) for v in (x, grid))
    result = np.empty((*wanted.shape[:-1], x.shape[-1]), x.dtype)
    for index in np.ndindex(*wanted.shape[:2]):
        pixels, parts = _places(params, wanted[index])
        values = _values(params, images[index], pixels, parts)
        result[index] = np.clip(values, *params.limits).astype(x.dtype)
    return (result,)


def _places(params: GridSampleParams, grid: Integers) -> tuple[list[Integers], list[Integers]]:
    """Return pixel and t of each place along each axis, [..., 1]."""
    pixels, parts = list[Integers](), list[Integers]()
    for axis, fraction in enumerate(int(f) for f in params.fractions):
        g = grid[..., axis]
        if params.pixels:
            index = g - _lowest_code(params.pixels[axis])
            pixels.append(params.pixels[axis][index])
            parts.append(params.parts[axis][index][..., None])
            continue
        m, n, half = int(params.rescale.m[axis]), int(params.rescale.n[axis]), 1 << (fraction - 1)
        q = ((g + params.offsets[1]) * m >> n) + (params.sizes[axis] - 1) * half
        q = np.clip(q, _LOWEST, _HIGHEST)
        if params.is_nearest:
            q = np.clip(q + half, _LOWEST, _HIGHEST)
        pixels.append(q >> fraction)
        parts.append((q & ((1 << fraction) - 1))[..., None])
    return pixels, parts


def _lowest_code(table: Integers) -> int:
    """Return the grid's lowest code, the one of a table's first entry."""
    return -(table.size // 2)


def _values(params: GridSampleParams, image: Integers, pixels: list[Integers], parts: list[Integers]) -> Integers:
    outside = None if params.has_border else -params.offsets[0]
    read = partial(pixels_at, image, params.sizes, outside)
    if params.is_nearest:
        return read(pixels[::-1])

    def mix(a: Integers, b: Integers, axis: int) -> Integers:
        return a + ((b - a) * parts[axis] >> int(params.fractions[axis]))

    return mix_pixels(read, pixels, mix)


def mix_pixels(
    read: Callable[[Sequence[Integers]], NDArray[Number]],
    pixels: Sequence[Integers],
    mix: Callable[[NDArray[Number], NDArray[Number], int], NDArray[Number]],
    chosen: tuple[Integers, ...] = (),
) -> NDArray[Number]:
    """Return the values between pixels, mixed along x first, then y, then z.

    Args:
        read: Function that returns the values at integer places, z, y, x.
        pixels: Pixels before the places, of x, y, z.
        mix: Function that mixes the values at both sides along an axis.
        chosen: Integer places already chosen for the last axes.
    """
    axis = len(pixels) - len(chosen) - 1
    if axis < 0:
        return read(chosen)
    first, second = (mix_pixels(read, pixels, mix, (*chosen, pixels[axis] + step)) for step in (0, 1))
    return mix(first, second, axis)


def pixels_at(
    image: NDArray[Number], sizes: Sequence[int], outside: int | None, places: Sequence[Integers]
) -> NDArray[Number]:
    """Return the pixels of [Z, Y, X, C] at whole places, z, y, x; outside a value, or the nearest pixel for None.

    Args:
        image: pixels.
        sizes: Sizes of x, y, z.
        outside: the value.
        places: Places along z, y, x.
    """
    inside = np.ones(places[0].shape, bool)
    for place, n in zip(places, sizes[::-1], strict=True):
        inside &= (place >= 0) & (place < n)
    values: NDArray[Number] = image[
        tuple(np.clip(place, 0, n - 1) for place, n in zip(places, sizes[::-1], strict=True))
    ]
    return values if outside is None else np.where(inside[..., None], values, image.dtype.type(outside))


KERNELS = {
    "grid_sample": Kernel(lower, run,
        "values at named places, nearest or between pixels", "Compass Optimizer, ops/grid_sample.py; "
            "docs/rules/aipu/operators.md"),
}  # fmt: skip

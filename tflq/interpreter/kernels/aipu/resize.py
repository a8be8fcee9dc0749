"""Resize NEAREST and BILINEAR (docs/rules/aipu/operators.md).

Coordinates of the pixels of a resized axis in the source, in float64, computed from the sizes only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.arrays import Doubles, Integers
from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.aipu.multiplier import scaled
from tflq.interpreter.kernels.aipu.scales import code_limits
from tflq.interpreter.registry import Kernel

MODES = (
    "HALF_PIXEL",
    "HALF_PIXEL_SYMMETRIC",
    "PYTORCH_HALF_PIXEL",
    "TF_HALF_PIXEL_FOR_NN",
    "ALIGN_CORNERS",
    "ASYMMETRIC",
)


def coordinates(old: int, new: int, mode: str) -> Doubles:
    """Return v[i] of each of `new` pixels.

    HALF_PIXEL, and HALF_PIXEL_SYMMETRIC without a ratio, (i + 0.5) * old / new - 0.5;
    TF_HALF_PIXEL_FOR_NN (i + 0.5) * old / new; ALIGN_CORNERS i * (old - 1) / (new - 1); ASYMMETRIC i * old / new;
    PYTORCH_HALF_PIXEL as HALF_PIXEL. ALIGN_CORNERS and PYTORCH_HALF_PIXEL return 0 for one pixel.
    """
    i = np.arange(new, dtype=np.float64)
    if new == 1 and mode in ("ALIGN_CORNERS", "PYTORCH_HALF_PIXEL"):
        return np.zeros(1)
    if mode == "ALIGN_CORNERS":
        v: Doubles = i * (old - 1) / (new - 1)
    elif mode == "ASYMMETRIC":
        v = i * old / new
    elif mode == "TF_HALF_PIXEL_FOR_NN":
        v = (i + 0.5) * old / new
    else:
        v = (i + 0.5) * old / new - 0.5
    return v


NEAREST, BILINEAR = "NEAREST", "BILINEAR"
ROUNDINGS = ("FLOOR", "CEIL", "ROUND_PREFER_CEIL", "ROUND_PREFER_FLOOR", "SIMPLE")
WEIGHT_BITS = 13


@dataclass(frozen=True, eq=False)
class ResizeParams:
    """The source pixels and weights of one resize.

    Attributes:
        rows: Rows of the source, one list for NEAREST, the rows above and the rows below for BILINEAR.
        columns: likewise, left and right.
        weights: int64[OH, OW, 1] of the four corners, row by row; empty for NEAREST.
        limits: smallest and largest quantized value.
    """

    rows: tuple[Integers, ...]
    columns: tuple[Integers, ...]
    weights: tuple[Integers, ...]
    limits: tuple[int, int]


def lower(node: Node, operands: Operands) -> ResizeParams:
    """Decide the pixels, and the weights.

    Raises:
        UnsupportedError: another method, mode or rounding; antialias.
    """
    method, mode, rounding = require_modes(node)
    x, output = operands.input(0), operands.output()
    sizes = list(zip(x.shape[1:3], output.shape[1:3], strict=True))
    limits = code_limits(output)
    if method == NEAREST:
        rows, columns = (nearest(old, new, mode, rounding) for old, new in sizes)
        return ResizeParams((rows,), (columns,), (), limits)
    (rows_around, below), (columns_around, right) = (around(old, new, mode) for old, new in sizes)
    weights = tuple(
        np.floor(of_row[:, None, None] * of_column[:, None] * (1 << WEIGHT_BITS) + 0.5).astype(np.int64)
        for of_row in (1 - below, below)
        for of_column in (1 - right, right)
    )
    return ResizeParams(rows_around, columns_around, weights, limits)


def run(params: ResizeParams, x: Array) -> tuple[Array, ...]:
    """Run Resize: quantized [S, N, H, W, C] -> quantized [S, N, OH, OW, C]."""
    corners = [x[:, :, rows][:, :, :, columns] for rows in params.rows for columns in params.columns]
    if not params.weights:
        return (corners[0],)
    total = sum(p.astype(np.int64) * c for p, c in zip(corners, params.weights, strict=True))
    codes = np.clip(scaled(np.asarray(total), 1, WEIGHT_BITS), *params.limits)
    return (codes.astype(x.dtype),)


def require_modes(node: Node) -> tuple[str, str, str]:
    """Return method, mode and rounding.

    Raises:
        UnsupportedError: another method, mode or rounding; antialias.
    """
    method, mode = node.attributes.text("method"), node.attributes.text("mode")
    rounding = node.attributes.text("nearest_mode", "ROUND_PREFER_FLOOR")
    if method not in (NEAREST, BILINEAR) or mode not in MODES or rounding not in ROUNDINGS:
        raise UnsupportedError(
            f"method={method}, mode={mode}, nearest_mode={rounding}; allowed are {NEAREST}, {BILINEAR}, "
            f"{', '.join(MODES)}, {', '.join(ROUNDINGS)}"
        )
    if method == BILINEAR and node.attributes.boolean("antialias", False):
        raise UnsupportedError("antialias=true; allowed is false")
    return method, mode, rounding


def nearest(old: int, new: int, mode: str, rounding: str) -> Integers:
    """Return the pixel of the source for each place."""
    v = coordinates(old, new, mode)
    places: Integers = np.clip(_round_coordinates(v, rounding, new < old), 0, old - 1).astype(np.int64)
    return places


def around(old: int, new: int, mode: str) -> tuple[tuple[Integers, Integers], Doubles]:
    """Return the pixels before and after each place, and its distance to the one before."""
    v = coordinates(old, new, mode)
    before, behind = np.maximum(np.floor(v), 0), np.minimum(np.ceil(v), old - 1)
    return (before.astype(np.int64), behind.astype(np.int64)), v - before


def _round_coordinates(v: Doubles, rounding: str, shrinks: bool) -> Doubles:
    rounded: Doubles = np.where(v == np.trunc(v) + 0.5, np.floor(v), np.rint(v))
    if rounding == "FLOOR":
        rounded = np.floor(v)
    elif rounding == "CEIL":
        rounded = np.ceil(v)
    elif rounding == "ROUND_PREFER_CEIL":
        rounded = np.floor(v + 0.5)
    elif rounding == "SIMPLE":
        rounded = np.ceil(v) if shrinks else np.trunc(v)
    return rounded


KERNELS = {
    "resize": Kernel(lower, run,
        "Resize NEAREST and BILINEAR (docs/rules/aipu/operators.md)",
        "Compass Optimizer, ops/interp.py; docs/rules/aipu/operators.md"),
}  # fmt: skip

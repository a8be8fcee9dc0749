"""Pooling, GlobalPool and Resize of images."""

from __future__ import annotations

from functools import partial

import numpy as np

from tflq.arrays import Singles
from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.accumulate import window_counts
from tflq.interpreter.accumulate.patches import padded, patches
from tflq.interpreter.kernels.aipu.grid_sample import METHODS, PADDINGS, denormalize, mix_pixels, pixels_at
from tflq.interpreter.kernels.aipu.pooling import AVERAGE, MAXIMUM, window_of
from tflq.interpreter.kernels.aipu.real.rules import Compute, kernels
from tflq.interpreter.kernels.aipu.resize import BILINEAR, NEAREST, around, nearest, require_modes
from tflq.interpreter.operands.checks import require_choice


def _pooling(node: Node, operands: Operands) -> Compute:
    x, method = operands.input(0), require_choice(node, "method", (AVERAGE, MAXIMUM))
    window = window_of(node, x, operands.output())
    output = window.output_size((x.shape[1], x.shape[2]))
    counts = window_counts(window, (x.shape[1], x.shape[2]))[:, :, None]
    if node.attributes.boolean("count_include_pad", False):
        counts = np.full(counts.shape, window.taps)
    outside = 0.0 if method == AVERAGE else -np.inf

    def compute(v: Singles) -> Array:
        seen = patches(padded(v.reshape(-1, *v.shape[2:]), window, outside, v.dtype), window, output)
        result: Singles = seen.max(axis=(3, 4)) if method == MAXIMUM else seen.sum(axis=(3, 4)) / np.maximum(counts, 1)
        return result.reshape(*v.shape[:2], *output, v.shape[4])

    return compute


def _resize(node: Node, operands: Operands) -> Compute:
    method, mode, rounding = require_modes(node)
    sizes = list(zip(operands.input(0).shape[1:3], operands.output().shape[1:3], strict=True))
    if method == NEAREST:
        rows, columns = (nearest(old, new, mode, rounding) for old, new in sizes)
        return lambda x: x[:, :, rows][:, :, :, columns]
    if method != BILINEAR:
        raise UnsupportedError(f"method={method}; allowed are {NEAREST}, {BILINEAR}")
    ((top, bottom), below), ((left, right), beside) = (around(old, new, mode) for old, new in sizes)
    below, beside = below[:, None, None], beside[:, None]

    def compute(x: Singles) -> Array:
        lines = x[:, :, top] * (1 - below) + x[:, :, bottom] * below
        return np.add(lines[:, :, :, left] * (1 - beside), lines[:, :, :, right] * beside)

    return compute


def _grid_sample(node: Node, operands: Operands) -> Compute:
    """Places in float32, pixels mixed along x, y, z."""
    is_nearest = require_choice(node, "method", METHODS) == "NEAREST"
    has_border = require_choice(node, "padding_mode", PADDINGS) == "BORDER"
    sizes, aligned = operands.input(0).shape[-2:0:-1], node.attributes.boolean("align_corners")

    def of_image(image: Singles, grid: Singles) -> Array:
        places = [denormalize(grid[..., axis], n, aligned) for axis, n in enumerate(sizes)]
        if is_nearest:
            places = [np.rint(p) for p in places]
        whole = [np.floor(p).astype(np.int64) for p in places]
        parts = [(p - w).astype(np.float32)[..., None] for p, w in zip(places, whole, strict=True)]
        read = partial(pixels_at, image, sizes, None if has_border else 0)

        def mix(a: Singles, b: Singles, axis: int) -> Singles:
            return (a + (b - a) * parts[axis]).astype(np.float32)

        return read(whole[::-1]) if is_nearest else mix_pixels(read, whole, mix)

    def compute(x: Singles, grid: Singles) -> Array:
        x, grid = (np.broadcast_to(v, (max(len(x), len(grid)), *v.shape[1:])) for v in (x, grid))
        pairs = zip(x, grid, strict=True)
        return np.stack([np.stack([of_image(*pair) for pair in zip(a, b, strict=True)]) for a, b in pairs])

    return compute


KERNELS = kernels(
    {
        "grid_sample": (_grid_sample, "pixels at places, the nearest or mixed by distance"),
        "global_pool": (_pooling, "mean or maximum of the whole image"),
        "pooling": (_pooling, "mean or maximum of each window"),
        "resize": (_resize, "the nearest pixel, or the mean of four weighted by distance"),
    }
)

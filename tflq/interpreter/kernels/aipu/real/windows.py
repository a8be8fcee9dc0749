"""Pooling, GlobalPool and Resize of images."""

from __future__ import annotations

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.accumulate import window_counts
from tflq.interpreter.accumulate.image import padded, patches
from tflq.interpreter.kernels.aipu.pooling import AVERAGE, MAXIMUM, window_of
from tflq.interpreter.kernels.aipu.real.rules import Compute, Reals, kernels
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

    def compute(v: Reals) -> Array:
        seen = patches(padded(v.reshape(-1, *v.shape[2:]), window, outside, v.dtype), window, output)
        found: Reals = seen.max(axis=(3, 4)) if method == MAXIMUM else seen.sum(axis=(3, 4)) / np.maximum(counts, 1)
        return found.reshape(*v.shape[:2], *output, v.shape[4])

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

    def compute(x: Reals) -> Array:
        lines = x[:, :, top] * (1 - below) + x[:, :, bottom] * below
        return np.add(lines[:, :, :, left] * (1 - beside), lines[:, :, :, right] * beside)

    return compute


KERNELS = kernels(
    {
        "global_pool": (_pooling, "mean or maximum of the whole image"),
        "pooling": (_pooling, "mean or maximum of each window"),
        "resize": (_resize, "the nearest pixel, or the mean of four weighted by distance"),
    }
)

"""AVERAGE_POOL_2D, L2_POOL_2D and MAX_POOL_2D of float32, taps in the order (ky, kx), of the n inside the image.

Average: f32(total / n) of the values; L2: f32(sqrt(f32(total / n))) of their squares. Maximum: starts at the smallest
finite number and is replaced by x if max < x: so NaN never wins, and of 0.0 and -0.0 the first stays. Equal to TFLite
bit for bit. Source: TFLite kernels/pooling.cc, internal/reference/pooling.h (AveragePool, L2Pool, MaxPool).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from tflq.arrays import Singles
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.accumulate import window_counts
from tflq.interpreter.accumulate.patches import padded, patches
from tflq.interpreter.accumulate.taps import of_window
from tflq.interpreter.kernels.float.convolution import LARGEST, Clamped, float_bounds
from tflq.interpreter.kernels.plain.binary import clamp_in_place
from tflq.interpreter.operands.checks import require_type
from tflq.interpreter.operands.sliding_windows import Window
from tflq.interpreter.operands.windows import pool_window
from tflq.interpreter.recording.primitive import primitive
from tflq.interpreter.registry import Kernel

FEW = 1 << 12
"""Totals up to this many are summed by one call: two calls for each tap cost more."""


@dataclass(frozen=True, eq=False)
class FloatAveragePool(Clamped):
    """The params of AVERAGE_POOL_2D and L2_POOL_2D of float32.

    Attributes:
        window: kernel, stride, padding.
        counts: float32[OH, OW], taps inside the image.
    """

    window: Window
    counts: Singles


@dataclass(frozen=True)
class FloatMaxPool(Clamped):
    """The params of MAX_POOL_2D of float32.

    Attributes:
        window: kernel, stride, padding.
    """

    window: Window


def lower_average(node: Node, operands: Operands) -> FloatAveragePool:
    """Decide window, counts and bounds of an average.

    Raises:
        UnsupportedError: a type other than float32.
        GraphError: an input that is no image, or a window that does not fit.
    """
    require_type(operands.input(0), (DType.FLOAT32,))
    window, size = pool_window(node, operands)
    return FloatAveragePool(*float_bounds(node), window, window_counts(window, size).astype(np.float32))


def _lower_max(node: Node, operands: Operands) -> FloatMaxPool:
    """Decide window and bounds of a maximum; raises as `lower_average`."""
    require_type(operands.input(0), (DType.FLOAT32,))
    return FloatMaxPool(*float_bounds(node), pool_window(node, operands)[0])


def run_average(params: FloatAveragePool, x: Singles) -> tuple[Array, ...]:
    """Run AVERAGE_POOL_2D: float32[S, N, H, W, C] -> float32[S, N, OH, OW, C]."""
    return (clamp_in_place(window_means(params, x), params.minimum, params.maximum),)


def window_means(params: FloatAveragePool, x: Singles) -> Singles:
    """Return total / n of each window, not clamped: float32[S, N, H, W, C] -> float32[S, N, OH, OW, C]."""
    window = params.window
    with np.errstate(over="ignore", invalid="ignore"):
        total = _sum(window, x)
        total /= params.counts[:, :, None]
    return total


@primitive("accumulator", "sum of the taps, in order, each rounded to float32", of_window)
def _sum(window: Window, x: Singles) -> Singles:
    output = window.output_size((x.shape[2], x.shape[3]))
    seen = cast(Singles, patches(padded(x.reshape(-1, *x.shape[2:]), window, 0.0, x.dtype), window, output))
    total = np.zeros((seen.shape[0], *output, x.shape[4]), np.float32)
    if x.shape[4] > 1 and total.size <= FEW:  # add.reduce adds row to row along the slow axis of memory
        rows = np.ascontiguousarray(seen).reshape(-1, window.kernel[0] * window.kernel[1], x.shape[4])
        sums: Singles = np.add.reduce(rows, axis=1, initial=np.float32(0))
        return sums.reshape(*x.shape[:2], *output, x.shape[4])
    for ky in range(window.kernel[0]):
        for kx in range(window.kernel[1]):
            total += seen[:, :, :, ky, kx]
    return total.reshape(*x.shape[:2], *output, x.shape[4])


def _run_l2(params: FloatAveragePool, x: Singles) -> tuple[Array, ...]:
    with np.errstate(over="ignore", invalid="ignore"):
        roots = np.sqrt(window_means(params, x * x))
    return (clamp_in_place(roots, params.minimum, params.maximum),)


def _run_max(params: FloatMaxPool, x: Singles) -> tuple[Array, ...]:
    """Run MAX_POOL_2D: float32[S, N, H, W, C] -> float32[S, N, OH, OW, C]."""
    largest = _largest(params.window, x)
    return (clamp_in_place(largest, params.minimum, params.maximum),)


@primitive("largest", "of the taps", of_window)
def _largest(window: Window, x: Singles) -> Singles:
    """A comparison with NaN is false, as in C, and not as in numpy's maximum."""
    output = window.output_size((x.shape[2], x.shape[3]))
    seen = patches(padded(x.reshape(-1, *x.shape[2:]), window, -LARGEST, x.dtype), window, output)
    largest = np.full((seen.shape[0], *output, x.shape[4]), -LARGEST, np.float32)
    for ky in range(window.kernel[0]):
        for kx in range(window.kernel[1]):
            tap = seen[:, :, :, ky, kx]
            np.copyto(largest, tap, where=np.greater(tap, largest))
    return largest.reshape(*x.shape[:2], *output, x.shape[4])


KERNELS = {
    "average_pool_2d": Kernel(lower_average, run_average,
        "float32: f32(total / n) over the n taps inside the image",
        "TFLite kernels/pooling.cc, internal/reference/pooling.h (AveragePool)"),
    "l2_pool_2d": Kernel(lower_average, _run_l2,
        "float32: f32(sqrt(f32(total / n))), total of the squares of the n taps inside the image",
        "TFLite kernels/pooling.cc, internal/reference/pooling.h (L2Pool)"),
    "max_pool_2d": Kernel(_lower_max, _run_max,
        "float32: the largest value over the taps inside the image",
        "TFLite kernels/pooling.cc, internal/reference/pooling.h (MaxPool)"),
}  # fmt: skip

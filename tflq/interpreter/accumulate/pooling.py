"""Exact window sums and window maxima of pools."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tflq.graph import Array
from tflq.interpreter.accumulate import taps
from tflq.interpreter.accumulate.patches import padded
from tflq.interpreter.accumulate.products import exact_dtype
from tflq.interpreter.operands.sliding_windows import Pair, Window
from tflq.interpreter.recording.primitive import primitive


@primitive("accumulator", "sum of the taps", taps.of_window)
def window_sums(window: Window, x: Array, input_magnitude: int) -> Array:
    """acc[..., c] = sum of x over the taps inside the image, exactly.

    Args:
        window: kernel, stride, dilation, padding.
        x: integers [S, N, H, W, C].
        input_magnitude: largest |x|.

    Returns:
        float32, float64 or int64 [S, N, OH, OW, C] of exact integers.
    """
    output = window.output_size((x.shape[2], x.shape[3]))
    dtype = exact_dtype(window.taps * input_magnitude)
    if window.kernel == x.shape[2:4] and output == (1, 1) and not any(window.padding):
        return np.asarray(np.add.reduce(x.astype(dtype), axis=(2, 3), keepdims=True))
    image = padded(x.reshape(-1, *x.shape[2:]), window, 0, dtype)
    rows = _reduce(np.add, image, window, output, axis=1)
    return _reduce(np.add, rows, window, output, axis=2).reshape(*x.shape[:2], *output, x.shape[4])


@primitive("largest", "of the taps", taps.of_window)
def window_maxima(window: Window, x: Array, lowest: int | float) -> Array:
    """Largest x over the taps inside the image.

    Args:
        window: kernel, stride, dilation, padding.
        x: [S, N, H, W, C] of any real type.
        lowest: no x is smaller; value outside the image.

    Returns:
        [S, N, OH, OW, C] in the type of x.
    """
    output = window.output_size((x.shape[2], x.shape[3]))
    image = padded(x.reshape(-1, *x.shape[2:]), window, lowest, x.dtype)
    rows = _reduce(np.maximum, image, window, output, axis=1)
    return _reduce(np.maximum, rows, window, output, axis=2).reshape(*x.shape[:2], *output, x.shape[4])


def window_counts(window: Window, input_size: Pair) -> NDArray[np.int64]:
    """Number of taps of each window inside the image: int64[OH, OW]."""
    output = window.output_size(input_size)
    counts = []
    for axis, before in ((0, window.top), (1, window.left)):
        first = np.arange(output[axis]) * window.stride[axis] - before
        taps = first[:, None] + np.arange(window.kernel[axis]) * window.dilation[axis]
        counts.append(((taps >= 0) & (taps < input_size[axis])).sum(axis=1))
    return np.asarray(counts[0][:, None] * counts[1][None, :], np.int64)


def _reduce(operation: np.ufunc, image: Array, window: Window, output: Pair, axis: int) -> Array:
    """Combine the taps of one axis (1: rows, 2: columns): the window is separable."""
    size, stride, dilation = output[axis - 1], window.stride[axis - 1], window.dilation[axis - 1]

    def tap(k: int) -> Array:
        start = k * dilation
        part = slice(start, start + (size - 1) * stride + 1, stride)
        return image[:, part] if axis == 1 else image[:, :, part]

    if window.kernel[axis - 1] == 1:
        return tap(0)
    total: Array = operation(tap(0), tap(1))
    for k in range(2, window.kernel[axis - 1]):
        operation(total, tap(k), out=total)
    return total

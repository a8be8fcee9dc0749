"""Transposed convolutions: each input pixel adds its products to the window of outputs that it reaches.

Output row y adds the products of input row i with tap ky if y = i * stride - top + ky; columns likewise. Products
outside the output are dropped. Exact integers in any order (`accumulate_transposed`), and float32 in the one order of
TFLite's reference kernel (`sequential_transposed`): input row, input column, channel.

Source: TFLite kernels/internal/reference/transpose_conv.h, integer_ops/transpose_conv.h.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tflq.arrays import Singles
from tflq.errors import GraphError
from tflq.graph import Array
from tflq.interpreter.accumulate.products import exact_dtype, worst_magnitude
from tflq.interpreter.accumulate.taps import TransposedTaps
from tflq.interpreter.operands.sliding_windows import Pair, Window
from tflq.interpreter.recording.primitive import Ids, primitive

Slices = tuple[slice, slice, slice, slice]
"""Samples, batch, rows, columns."""

ALL = slice(None)


@dataclass(frozen=True)
class TransposedWindow:
    """Positions of the kernel on the output: a window over the output's size, with its stride and padding.

    Attributes:
        window: kernel, stride and the padding that is cut off; dilation 1.
        output: (height, width).
    """

    window: Window
    output: Pair

    def taps(self, size: Pair) -> Iterator[tuple[int, int, Slices, Slices]]:
        """Yield ky, kx, the input pixels and the output pixels that meet there; last taps first.

        Args:
            size: (height, width) of the input.
        """
        for ky in reversed(range(self.window.kernel[0])):
            rows = meeting(size[0], self.output[0], self.window.stride[0], ky - self.window.top)
            for kx in reversed(range(self.window.kernel[1])):
                columns = meeting(size[1], self.output[1], self.window.stride[1], kx - self.window.left)
                if rows is not None and columns is not None:
                    source, target = zip(rows, columns, strict=True)
                    yield ky, kx, (ALL, ALL, *source), (ALL, ALL, *target)


@dataclass(frozen=True, eq=False)
class Transposed:
    """Weights packed for `accumulate_transposed`.

    Attributes:
        place: window and output size.
        columns: [KH, KW, C, O] in the accumulator's type: float32, float64 or int64.
    """

    place: TransposedWindow
    columns: Array


def prepare_transposed(weights: Array, place: TransposedWindow, input_magnitude: int) -> Transposed:
    """Make weights ready.

    Args:
        weights: integers [O, KH, KW, C].
        place: Window with a kernel of (KH, KW).
        input_magnitude: largest |x|, zero point taken off.

    Raises:
        GraphError: the kernel sizes differ.
    """
    if weights.shape[1:3] != place.window.kernel:
        raise GraphError(f"weights {weights.shape} do not fit a kernel of {place.window.kernel}")
    dtype = exact_dtype(worst_magnitude(weights, input_magnitude))
    return Transposed(place, np.ascontiguousarray(np.moveaxis(weights, 0, -1), dtype))


def of_transposed(prepared: Transposed, x: Ids) -> TransposedTaps:
    """Taps of `accumulate_transposed`."""
    return of_sequential_transposed(x, np.moveaxis(prepared.columns, -1, 0), prepared.place)


@primitive("sum of products", "over the taps", of_transposed)
def accumulate_transposed(prepared: Transposed, x: Array) -> Array:
    """acc[..., o] = sum over the taps that meet there and the channels of x * w, exactly.

    Args:
        prepared: weights and window.
        x: integers [S, N, H, W, C], zero point taken off.

    Returns:
        float32, float64 or int64 [S, N, OH, OW, O] of exact integers.
    """
    columns = prepared.columns
    image = x.astype(columns.dtype)
    total = np.zeros((*x.shape[:2], *prepared.place.output, columns.shape[-1]), columns.dtype)
    for ky, kx, source, target in prepared.place.taps((x.shape[2], x.shape[3])):
        total[target] += np.matmul(image[source], columns[ky, kx])
    return total


def of_sequential_transposed(x: Ids, weights: Array, place: TransposedWindow) -> TransposedTaps:
    """Taps of `sequential_transposed`."""
    return TransposedTaps(place.window, x, weights)


@primitive("sum of products", "over the taps, in order, each rounded to float32", of_sequential_transposed)
def sequential_transposed(x: Singles, weights: Singles, place: TransposedWindow) -> Singles:
    """Return float32 totals [S, N, OH, OW, O], without bias, summed in TFLite's order.

    Args:
        x: [S, N, H, W, C].
        weights: [O, KH, KW, C].
        place: window and output size.
    """
    total = np.zeros((*x.shape[:2], *place.output, weights.shape[0]), np.float32)
    for ky, kx, source, target in place.taps((x.shape[2], x.shape[3])):
        seen = total[target]
        pixels = x[source]
        for c in range(x.shape[-1]):
            seen += pixels[..., c, None] * weights[:, ky, kx, c]
    return total


def meeting(size: int, output: int, stride: int, offset: int) -> tuple[slice, slice] | None:
    """Return which inputs reach an output at i * stride + offset, and which outputs; None if none does."""
    first = max(0, -(offset // stride))
    last = min(size - 1, (output - 1 - offset) // stride)
    if last < first:
        return None
    start = first * stride + offset
    return slice(first, last + 1), slice(start, start + (last - first) * stride + 1, stride)

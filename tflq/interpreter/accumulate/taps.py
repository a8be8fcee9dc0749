"""The taps of one output element of a primitive: the input elements that it reads, with their weights.

A function of taps takes arguments of its primitive by name, with the numbers of elements in place of `x`. The functions
for packed weights are in the modules of their primitives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tflq.graph import Array
from tflq.interpreter.operands.sliding_windows import Window
from tflq.interpreter.recording.primitive import Ids, Taps, TapsOf

Number = int | float
WeightsOf = Callable[[int], tuple[Array | None, slice]]
"""Output channel -> its weights [KH, KW, C'], and the input channels that they belong to."""


def of_sequential_convolution(x: Ids, weights: Array, window: Window, groups: int) -> WindowTaps:
    """Taps of `sequential_convolution`."""
    depth, outputs = weights.shape[3], weights.shape[0] // groups

    def own(o: int) -> tuple[Array, slice]:
        first = o // outputs * depth
        return weights[o], slice(first, first + depth)

    return WindowTaps(window, x, None, own)


def of_sequential_product(x: Ids, weights: Array) -> TapsOf:
    """Taps of `sequential_product`."""
    return lambda index: Taps(x[index[0]], weights[index[1]])


def of_matrices(x: Ids, y: Array) -> TapsOf:
    """Taps of `exact_products` and `sequential_products`."""

    def taps(index: tuple[int, ...]) -> Taps:
        stack, (row, column) = index[:-2], index[-2:]
        left = np.broadcast_to(x, (*np.broadcast_shapes(x.shape[:-2], y.shape[:-2]), *x.shape[-2:]))
        right = np.broadcast_to(y, (*left.shape[:-2], *y.shape[-2:]))
        return Taps(left[stack][row], right[stack][:, column])

    return taps


def of_rows(x: Ids) -> TapsOf:
    """Taps of sums over the last axis."""
    return lambda index: Taps(x[index])


def of_lanes(x: Ids, weights: Array) -> TapsOf:
    """Taps of the product of a matrix with vectors [..., K]."""
    return lambda index: Taps(x[index[:-1]], weights[index[-1]])


def of_window(window: Window, x: Ids) -> WindowTaps:
    """Taps of `window_sums` and `window_maxima`: the taps inside the image."""
    return WindowTaps(window, x, None, lambda c: (None, slice(c, c + 1)))


@dataclass(frozen=True, eq=False)
class WindowTaps:
    """Taps of a window over images [S, N, H, W, C].

    Attributes:
        window: kernel, stride, dilation, padding.
        x: numbers of the image's elements.
        outside: Value of taps outside the image; None if they are skipped.
        weights: Function that returns the weights of an output channel, and their input channels.
    """

    window: Window
    x: Ids
    outside: Number | None
    weights: WeightsOf

    def __call__(self, index: tuple[int, ...]) -> Taps:
        """Return the taps of output element [s, n, row, column, channel]."""
        window = self.window
        before = (window.top, window.left)
        axes = zip(index[2:4], window.kernel, window.stride, before, window.dilation, strict=True)
        rows = [places_read(*axis) for axis in axes]
        factors, channels = self.weights(index[-1])
        return taps_at(self.x[index[:2]], rows, factors, channels, self.outside)


@dataclass(frozen=True, eq=False)
class TransposedTaps:
    """Taps of a transposed window: the input pixels that reach an output.

    Attributes:
        window: kernel, stride and the padding that is cut off.
        x: numbers of the input's elements [S, N, H, W, C].
        weights: [O, KH, KW, C].
    """

    window: Window
    x: Ids
    weights: Array

    def __call__(self, index: tuple[int, ...]) -> Taps:
        """Return the taps of output element [s, n, row, column, channel]."""
        axes = zip(index[2:4], self.window.kernel, self.window.stride, (self.window.top, self.window.left), strict=True)
        rows = [places_reached(*axis) for axis in axes]
        return replace(taps_at(self.x[index[:2]], rows, self.weights[index[-1]], slice(None), None), note="")


def taps_at(
    image: Ids, places: Sequence[Sequence[int]], weights: Array | None, channels: slice, outside: Number | None
) -> Taps:
    """Return the taps at places along each axis of an image [..., C]; places beyond the image are outside."""
    inside = [[0 <= i < n for i in axis] for axis, n in zip(places, image.shape, strict=False)]
    mask = np.logical_and.reduce(np.meshgrid(*inside, indexing="ij"))
    grid = np.ix_(*[np.clip(axis, 0, n - 1) for axis, n in zip(places, image.shape, strict=False)])
    sources = np.where(mask[..., None], image[..., channels][grid], -1)
    spans = [f"{name} {axis[0]}..{axis[-1]}" for name, axis in zip(_NAMES[len(places)], places, strict=True)]
    note = ", ".join(spans)
    if outside is None:
        kept = sources >= 0
        return Taps(sources[kept], None if weights is None else weights[kept], note=note)
    skipped = f"; {(~mask).sum()} of {mask.size} taps lie outside and hold {outside}" if not mask.all() else ""
    return Taps(sources, weights, outside, f"{note}, [row][column][channel]{skipped}")


_NAMES = {2: ("rows", "columns"), 3: ("planes", "rows", "columns")}


def places_read(i: int, kernel: int, stride: int, before: int, dilation: int) -> list[int]:
    """Return the input index of each tap of output i; an index may be outside the image."""
    return [i * stride - before + k * dilation for k in range(kernel)]


def places_reached(i: int, kernel: int, stride: int, before: int, dilation: int = 1) -> list[int]:
    """Return the input index of each tap of a transposed window at output i; -1 for a tap without an input."""
    pairs = (divmod(i + before - k * dilation, stride) for k in range(kernel))
    return [whole if rest == 0 and whole >= 0 else -1 for whole, rest in pairs]

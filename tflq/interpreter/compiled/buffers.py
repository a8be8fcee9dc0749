"""Places of tensors in a sample's arena: rows of pixels of channels, with a border of the padding value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from tflq.graph import Tensor
from tflq.interpreter.operands.sliding_windows import Window

SLACK = 64
"""Bytes behind a tensor that loops may read: one vector."""
Margins = tuple[int, int, int, int]
"""Rows and columns of a border: top, bottom, left, right."""
NO_MARGINS: Margins = (0, 0, 0, 0)
Offsets = NDArray[np.int32]
Pair = tuple[int, int]


@dataclass(frozen=True)
class Buffer:
    """One tensor.

    Attributes:
        height: rows; 1 if the tensor is no image.
        width: pixels of a row.
        channels: Number of channels of a pixel.
        least: smallest value of the type.
        is_real: whether elements are float32 quantized values; else bytes, quantized value - least.
        margins: Margins of the border.
        pad: quantized value in the border.
        at: Offset of the border in the arena, in bytes.
    """

    height: int
    width: int
    channels: int
    least: int
    is_real: bool
    margins: Margins
    pad: int
    at: int = 0

    @property
    def pixel(self) -> int:
        """Bytes between pixels."""
        return self.channels * (4 if self.is_real else 1)

    @property
    def row(self) -> int:
        """Bytes between rows."""
        _, _, left, right = self.margins
        return (left + self.width + right) * self.pixel

    @property
    def first(self) -> int:
        """Offset of the first pixel inside the border."""
        top, _, left, _ = self.margins
        return self.at + top * self.row + left * self.pixel

    @property
    def size(self) -> int:
        """Bytes with the border, without slack."""
        top, bottom, _, _ = self.margins
        return (top + self.height + bottom) * self.row

    @property
    def is_flat(self) -> bool:
        """Whether there is no border."""
        return self.margins == NO_MARGINS

    def places(self, rows: int, columns: int, stride: Pair = (1, 1), start: Pair = (0, 0)) -> Offsets:
        """Return the offsets of pixels, int32[rows * columns], the first of them at row and column `start`."""
        down = (np.arange(rows) * stride[0] + start[0]) * self.row
        along = (np.arange(columns) * stride[1] + start[1]) * self.pixel
        found: Offsets = (self.first + down[:, None] + along).astype(np.int32).reshape(-1)
        return found

    def fill(self, arena: NDArray[np.uint8]) -> None:
        """Write the border, and the elements that it encloses, into a sample's arena."""
        if not self.is_flat:
            part = arena[self.at : self.at + self.size]
            if self.is_real:
                part.view(np.float32)[:] = self.pad
            else:
                part[:] = self.pad - self.least


def image_of(tensor: Tensor) -> tuple[int, int, int]:
    """Return height, width and channels: the sizes of one image, or a single row of all vectors along the last axis."""
    shape = tensor.shape
    if len(shape) == 4 and shape[0] == 1:
        return shape[1], shape[2], shape[3]
    return (1, prod(shape[:-1]), shape[-1]) if shape else (1, 1, 1)


def margins_of(window: Window, height: int, width: int) -> Margins:
    """Return the border that a window reads around an image."""
    rows, columns = window.output_size((height, width))
    bottom = (rows - 1) * window.stride[0] + window.extent[0] - window.top - height
    right = (columns - 1) * window.stride[1] + window.extent[1] - window.left - width
    return window.top, max(bottom, 0), window.left, max(right, 0)


def joined(margins: Iterable[Margins]) -> Margins:
    """Return the smallest border that covers all of these."""
    top, bottom, left, right = map(max, zip(NO_MARGINS, *margins, strict=True))
    return top, bottom, left, right


def placed(buffers: Sequence[tuple[Buffer, int, int]]) -> list[int]:
    """Return the offsets of buffers, each at the first gap that is free while it is needed.

    A border is filled once: buffers with one share their place only with buffers of the same form.

    Args:
        buffers: each with the first and the last turn in which it is needed.
    """
    found: list[tuple[int, int]] = []
    for n, (buffer, first, last) in enumerate(buffers):
        at, length = 0, _aligned(buffer.size + SLACK)
        shared = [] if buffer.is_flat else [m for m in range(n) if buffers[m][0] == buffer]
        apart = [m for m in range(n) if buffers[m][1] > last or buffers[m][2] < first]
        free = {m for m in apart if buffer.is_flat and buffers[m][0].is_flat}
        places = sorted({found[m][0] for m in shared if all(k in apart for k in shared if found[k] == found[m])})
        if places:
            at = places[0]
        else:
            for begin, end in sorted(found[m] for m in range(n) if m not in free):
                if at + length <= begin:
                    break
                at = max(at, end)
        found.append((at, at + length))
    return [begin for begin, _ in found]


def _aligned(size: int) -> int:
    return -(-size // SLACK) * SLACK

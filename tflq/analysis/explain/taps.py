"""The taps of one output element: which input elements a window reads."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.analysis.explain.steps import Trace
from tflq.graph import Array
from tflq.interpreter.accumulate import Window

Rows = tuple[tuple[tuple[int, ...], ...], ...]


@dataclass(frozen=True)
class Patch:
    """What one output element reads of an image.

    Attributes:
        codes: [KH][KW][C] of Python integers; taps outside the image hold the padding.
        inside: number of taps inside the image.
        rows: first and last row of the image that the window spans; they may lie outside.
        columns: likewise.
    """

    codes: Rows
    inside: int
    rows: tuple[int, int]
    columns: tuple[int, int]

    def show(self, trace: Trace, padding: str) -> None:
        """Add the step that shows the window."""
        (top, bottom), (left, right) = self.rows, self.columns
        taps = len(self.codes) * len(self.codes[0])
        note = f"; {taps - self.inside} of {taps} taps lie outside and hold {padding}" if self.inside < taps else ""
        trace.add("inputs", f"rows {top}..{bottom}, columns {left}..{right}, [row][column][channel]{note}", self.codes)


def patch_of(image: Array, window: Window, place: tuple[int, int, int], channels: range, padding: int) -> Patch:
    """Return the taps.

    Args:
        image: T[N, H, W, C].
        window: kernel, stride, dilation, padding.
        place: (n, row, column) of the output.
        channels: of the input.
        padding: what taps outside hold.
    """
    n = place[0]
    rows, columns = tap_positions(window, place[1:])
    height, width = image.shape[1], image.shape[2]
    inside = 0
    codes = []
    for y in rows:
        line = []
        for x in columns:
            within = 0 <= y < height and 0 <= x < width
            inside += within
            line.append(tuple(int(image[n, y, x, c]) if within else padding for c in channels))
        codes.append(tuple(line))
    return Patch(tuple(codes), inside, (rows[0], rows[-1]), (columns[0], columns[-1]))


def tap_positions(window: Window, place: tuple[int, int]) -> tuple[list[int], list[int]]:
    """Return the rows and columns of the image that the window at (row, column) reads; some may lie outside."""
    row, column = place
    rows = [row * window.stride[0] - window.top + k * window.dilation[0] for k in range(window.kernel[0])]
    columns = [column * window.stride[1] - window.left + k * window.dilation[1] for k in range(window.kernel[1])]
    return rows, columns


def products_by_channel(inputs: Rows, weights: Rows) -> tuple[int, ...]:
    """Sum the products over the taps for each input channel: sum over ky, kx of x * w."""
    sums = [0] * len(inputs[0][0])
    for input_row, weight_row in zip(inputs, weights, strict=True):
        for xs, ws in zip(input_row, weight_row, strict=True):
            for c, (x, w) in enumerate(zip(xs, ws, strict=True)):
                sums[c] += x * w
    return tuple(sums)


def total(weights: Rows) -> int:
    """Sum all weights."""
    return sum(w for row in weights for column in row for w in column)


def rows_of(array: Array) -> Rows:
    """Return integers [KH, KW, C] as nested tuples."""
    return tuple(tuple(tuple(int(v) for v in column) for column in row) for row in array)

"""Convolutions of float32 volumes, forward and transposed, summed in the one order of TFLite's reference kernels.

Forward: output i reads input i * stride - before + k * dilation along each axis; the order is depth, row, column of the
kernel, then channel. Transposed: input i adds to output i * stride - before + k * dilation; the order is depth, row,
column of the input, then channel. Elements outside are left out.

Source: TFLite kernels/internal/reference/conv3d.h, conv3d_transpose.h.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from tflq.arrays import Singles
from tflq.graph import Array
from tflq.interpreter.accumulate.taps import places_reached, places_read, taps_at
from tflq.interpreter.accumulate.transposed import ALL, meeting
from tflq.interpreter.recording.primitive import Ids, Taps, TapsOf, primitive

Triple = tuple[int, int, int]
Index = tuple[slice, ...]


@dataclass(frozen=True)
class VolumeWindow:
    """Positions of a kernel in a volume: (depth, height, width) of everything.

    Attributes:
        kernel: taps.
        stride: Step in the larger size from one window to the next.
        dilation: distance of neighboring taps.
        before: Padding before each axis.
        output: size of the result.
    """

    kernel: Triple
    stride: Triple
    dilation: Triple
    before: Triple
    output: Triple

    def meetings(self, axes: Triple, others: Triple, last_first: bool) -> Iterator[tuple[Triple, Index, Index]]:
        """Yield each tap with the places along `axes` that meet places of `others` there.

        Args:
            axes: sizes that are strided over: the output's forward, the input's transposed.
            others: sizes that are reached.
            last_first: True to start with the last tap.
        """
        taps = [range(k)[::-1] if last_first else range(k) for k in self.kernel]
        for tap in product(*taps):
            pairs = [
                meeting(axes[i], others[i], self.stride[i], tap[i] * self.dilation[i] - self.before[i])
                for i in range(3)
            ]
            found = [pair for pair in pairs if pair is not None]
            if len(found) == 3:
                here, there = zip(*found, strict=True)
                yield (tap[0], tap[1], tap[2]), (ALL, ALL, *here), (ALL, ALL, *there)


def of_volume(x: Ids, weights: Array, window: VolumeWindow) -> TapsOf:
    """Taps of `sequential_volume`."""

    def taps(index: tuple[int, ...]) -> Taps:
        axes = zip(index[2:5], window.kernel, window.stride, window.before, window.dilation, strict=True)
        rows = [places_read(*axis) for axis in axes]
        return taps_at(x[index[:2]], rows, weights[..., index[-1]], slice(None), None)

    return taps


@primitive("sum of products", "over the taps, in order, each rounded to float32", of_volume)
def sequential_volume(x: Singles, weights: Singles, window: VolumeWindow) -> Singles:
    """Return totals [S, N, OD, OH, OW, O] of x [S, N, D, H, W, C] with weights [KD, KH, KW, C, O]; no bias."""
    total = np.zeros((*x.shape[:2], *window.output, weights.shape[4]), np.float32)
    for tap, target, source in window.meetings(window.output, _size(x), last_first=False):
        seen, pixels = total[target], x[source]
        for c in range(x.shape[-1]):
            seen += pixels[..., c, None] * weights[tap][c]
    return total


def of_transposed_volume(x: Ids, weights: Array, window: VolumeWindow) -> TapsOf:
    """Taps of `sequential_transposed_volume`."""

    def taps(index: tuple[int, ...]) -> Taps:
        axes = zip(index[2:5], window.kernel, window.stride, window.before, window.dilation, strict=True)
        rows = [places_reached(*axis) for axis in axes]
        return replace(taps_at(x[index[:2]], rows, weights[..., index[-1], :], slice(None), None), note="")

    return taps


@primitive("sum of products", "over the taps, in order, each rounded to float32", of_transposed_volume)
def sequential_transposed_volume(x: Singles, weights: Singles, window: VolumeWindow) -> Singles:
    """Return totals [S, N, OD, OH, OW, O] of x [S, N, D, H, W, C] with weights [KD, KH, KW, O, C]; no bias."""
    total = np.zeros((*x.shape[:2], *window.output, weights.shape[3]), np.float32)
    for tap, source, target in window.meetings(_size(x), window.output, last_first=True):
        seen, pixels = total[target], x[source]
        for c in range(x.shape[-1]):
            seen += pixels[..., c, None] * weights[tap][:, c]
    return total


def _size(x: Singles) -> Triple:
    return (x.shape[2], x.shape[3], x.shape[4])

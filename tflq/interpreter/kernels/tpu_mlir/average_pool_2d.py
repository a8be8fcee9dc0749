"""AVERAGE_POOL_2D (averages.py); the padding is not counted."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.graph import Array, Node, Operands
from tflq.interpreter.accumulate import Window, window_counts, window_of, window_sums
from tflq.interpreter.kernels.tpu_mlir.averages import AverageParams, lower_average
from tflq.interpreter.numerics.fixed_point import Integers


@dataclass(frozen=True, eq=False)
class AveragePoolParams:
    """The numbers of one pool.

    Attributes:
        window: kernel, stride, padding.
        counts: taps inside the image, int64[OH, OW, 1].
        magnitude: largest |code| of the input.
        average: how sums become codes.
    """

    window: Window
    counts: Integers
    magnitude: int
    average: AverageParams


def lower(node: Node, operands: Operands) -> AveragePoolParams:
    """Decide the numbers of AVERAGE_POOL_2D; raises as `lower_average`."""
    x = operands.input(0)
    size = (x.shape[1], x.shape[2])
    kernel = (node.attributes.integer("filter_height"), node.attributes.integer("filter_width"))
    window = window_of(node.attributes, size, kernel)
    counts = window_counts(window, size)[:, :, None]
    average = lower_average(node, operands, window.taps, bool((counts < window.taps).any()))
    return AveragePoolParams(window, counts, max(-x.dtype.minimum, x.dtype.maximum), average)


def run(params: AveragePoolParams, x: Array) -> tuple[Array, ...]:
    """Run AVERAGE_POOL_2D: codes [S, N, H, W, C] -> codes [S, N, OH, OW, C]."""
    sums = window_sums(params.window, x, params.magnitude)
    return (params.average.apply(sums, params.counts),)

"""Average pools, means and sums in every arithmetic of integers: exact sums, then the arithmetic's own rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from tflq.arrays import Integers
from tflq.graph import Array, Node, Operands
from tflq.interpreter.accumulate import window_counts, window_maxima, window_sums
from tflq.interpreter.operands.checks import Reduction, lower_reduction
from tflq.interpreter.operands.sliding_windows import Window
from tflq.interpreter.operands.windows import window_of_node
from tflq.interpreter.registry import Kernel


class Average(Protocol):
    """Rule from sums to stored values; a frozen dataclass of its arithmetic."""

    def apply(self, sums: Array, counts: Integers | int) -> Array:
        """Return the stored values.

        Args:
            sums: exact integers of any numeric type [..., C].
            counts: elements in each sum; of a window, its taps inside the image. Broadcasts against the sums.
        """


FindAverage = Callable[[Node, Operands, int, bool], Average]
"""Makes the rule of a node from the elements of a full sum, and whether some windows have fewer."""
FindWindow = Callable[[Node, Operands], Window]


@dataclass(frozen=True, eq=False)
class AveragePool:
    """One average pool.

    Attributes:
        window: kernel, stride, padding.
        counts: taps inside the image, int64[OH, OW, 1].
        average: Rule from sums to stored values.
        magnitude: largest |x|.
    """

    window: Window
    counts: Integers
    average: Average
    magnitude: int


@dataclass(frozen=True, eq=False)
class Mean:
    """One mean or sum over axes.

    Attributes:
        reduction: Reduced axes and their count.
        average: Rule from sums to stored values.
    """

    reduction: Reduction
    average: Average


@dataclass(frozen=True, eq=False)
class MaxPool:
    """One maximum over windows.

    Attributes:
        window: kernel, stride, padding.
        minimum: smallest value of the type, the value outside the image.
        floor: least result of each position, [OH, OW, 1], if the padding takes part; else None.
        bounds: Bounds of a fused activation; None if there is none.
    """

    window: Window
    minimum: int
    floor: Array | None = None
    bounds: tuple[int, int] | None = None


def lower_average_pool(
    node: Node, operands: Operands, find: FindAverage, find_window: FindWindow | None = None
) -> AveragePool:
    """Decide the window and the rule of an average pool [N, H, W, C]; `find_window` may refuse windows."""
    x = operands.input(0)
    window = window_of_node(node, x.shape) if find_window is None else find_window(node, operands)
    counts = window_counts(window, (x.shape[1], x.shape[2]))[:, :, None]
    average = find(node, operands, window.taps, bool((counts < window.taps).any()))
    return AveragePool(window, counts, average, max(-x.dtype.minimum, x.dtype.maximum))


def run_average_pool(params: AveragePool, x: Array) -> tuple[Array, ...]:
    """Run an average pool: [S, N, H, W, C] -> [S, N, OH, OW, C]."""
    return (params.average.apply(window_sums(params.window, x, params.magnitude), params.counts),)


def lower_mean(node: Node, operands: Operands, find: FindAverage) -> Mean:
    """Decide the axes and the rule of a mean; raises as `lower_reduction`."""
    reduction = lower_reduction(node, operands)
    return Mean(reduction, find(node, operands, reduction.count, False))


def run_mean(params: Mean, x: Array, *_axes: Array) -> tuple[Array, ...]:
    """Run a mean: [S, *shape] -> [S, *shape without the axes, or with 1 there]; reals are summed in float32."""
    axes = tuple(axis + 1 for axis in params.reduction.axes)
    sums = x.sum(axis=axes, dtype=np.int64 if x.dtype.kind in "iu" else np.float32, keepdims=params.reduction.keep_dims)
    return (params.average.apply(sums, params.reduction.count),)


def run_max_pool(params: MaxPool, x: Array) -> tuple[Array, ...]:
    """Run a maximum over windows: [S, N, H, W, C] -> [S, N, OH, OW, C]."""
    largest = window_maxima(params.window, x, params.minimum)
    if params.floor is not None:
        largest = np.maximum(largest, params.floor)
    return (largest if params.bounds is None else np.clip(largest, *params.bounds).astype(x.dtype),)


def samples_last(params: object, operands: Operands) -> float | None:
    """Return 0 for averages over the whole image, with sums that are as fast along any axis; None for other layers."""
    image = operands.input(0).shape[1:3]
    return 0.0 if isinstance(params, AveragePool) and params.window.kernel == image else None


def average_pool_kernel(find: FindAverage, rule: str, source: str, find_window: FindWindow | None = None) -> Kernel:
    """Return AVERAGE_POOL_2D of an arithmetic.

    Args:
        find: makes the rule of a node.
        rule: Text of the rule, in one line.
        source: Source of the rule.
        find_window: Window function as for `lower_average_pool`.
    """
    lower = partial(lower_average_pool, find=find, find_window=find_window)
    return Kernel(lower, run_average_pool, rule, source, samples_last=samples_last)


def mean_kernel(find: FindAverage, rule: str, source: str) -> Kernel:
    """Return MEAN or SUM of an arithmetic; arguments as for `average_pool_kernel`."""
    return Kernel(partial(lower_mean, find=find), run_mean, rule, source)

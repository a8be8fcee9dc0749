"""MEAN on codes (averages.py)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.openvino.averages import AverageParams, lower_average
from tflq.interpreter.operands.reduction_axes import Reduction, lower_reduction


@dataclass(frozen=True, eq=False)
class MeanParams:
    """The numbers of one mean.

    Attributes:
        reduction: which axes.
        average: how sums become means.
    """

    reduction: Reduction
    average: AverageParams


def lower(node: Node, operands: Operands) -> MeanParams:
    """Decide the numbers of MEAN.

    Raises:
        UnsupportedError: as `lower_average`; per-channel codes whose channels are averaged.
        GraphError: axes out of range, or nothing to average.
    """
    found, x = lower_reduction(node, operands), operands.input(0)
    average = lower_average(node, operands)
    if average.source.is_per_axis and len(x.shape) - 1 in found.axes:
        raise UnsupportedError("the mean of channels that have ranges of their own")
    if found.count < 1:
        raise UnsupportedError(f"the mean of no element: shape {x.shape}")
    return MeanParams(found, average)


def run(params: MeanParams, x: Array, *_axes: Array) -> tuple[Array, ...]:
    """Run MEAN: codes [S, *shape] -> codes or float32 [S, *shape without the axes, or with 1 there]."""
    axes = tuple(axis + 1 for axis in params.reduction.axes)
    sums = x.sum(axis=axes, dtype=np.int64, keepdims=params.reduction.keep_dims)
    return (params.average.apply(sums, params.reduction.count),)

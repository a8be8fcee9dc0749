"""MEAN over height and width: an average pool over the whole image (averages.py)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.tpu_mlir.averages import AverageParams, lower_average


@dataclass(frozen=True, eq=False)
class MeanParams:
    """The numbers of one mean.

    Attributes:
        keep: whether the axes stay with size 1.
        average: how sums become codes.
    """

    keep: bool
    average: AverageParams


def lower(node: Node, operands: Operands) -> MeanParams:
    """Decide the numbers of MEAN.

    Raises:
        UnsupportedError: other axes than 1 and 2 of a tensor of rank 4; else as `lower_average`.
    """
    x = operands.input(0)
    axes = sorted(int(a) % len(x.shape) for a in operands.constant(1).reshape(-1))
    if len(x.shape) != 4 or axes != [1, 2]:
        raise UnsupportedError(f"mean over axes {axes} of shape {x.shape}; known are axes 1 and 2 of rank 4")
    average = lower_average(node, operands, x.shape[1] * x.shape[2], False)
    return MeanParams(node.attributes.boolean("keep_dims", False), average)


def run(params: MeanParams, x: Array, *_axes: Array) -> tuple[Array, ...]:
    """Run MEAN: codes [S, N, H, W, C] -> codes [S, N, C] or [S, N, 1, 1, C]."""
    sums = x.sum(axis=(2, 3), dtype=np.int64, keepdims=params.keep)
    return (params.average.apply(sums, params.average.taps),)

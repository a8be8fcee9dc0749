"""The axes of an operator that reduces: resolved against the input's rank, without repetition."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, Node, Operands
from tflq.interpreter.operands.checks import constant_integers, resolve_axis


@dataclass(frozen=True)
class Reduction:
    """Which axes go.

    Attributes:
        axes: sorted, counted from 0 in the model's own shape.
        count: number of elements that become one.
        keep_dims: whether the axes stay, with length 1.
    """

    axes: tuple[int, ...]
    count: int
    keep_dims: bool


def lower_reduction(node: Node, operands: Operands) -> Reduction:
    """Read the axes from input 1; negative ones count from the back, doubles count once.

    Raises:
        GraphError: an axis out of range, or computed at run time.
    """
    shape = operands.input(0).shape
    axes = constant_integers(operands, 1).reshape(-1)
    resolved = sorted({resolve_axis(int(axis), len(shape)) for axis in axes}) if shape else []
    count = int(np.prod([shape[axis] for axis in resolved], dtype=np.int64))
    return Reduction(tuple(resolved), count, node.attributes.boolean("keep_dims", False))


def shape_of_result(reduction: Reduction, x: Array) -> tuple[int, ...]:
    """Return the shape of the result for x[S, *shape], sample axis included."""
    return (x.shape[0], *reduced_shape(reduction, x.shape[1:]))


def reduced_shape(reduction: Reduction, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of the result for an input of this shape, both without the sample axis."""
    if reduction.keep_dims:
        return tuple(1 if i in reduction.axes else size for i, size in enumerate(shape))
    return tuple(size for i, size in enumerate(shape) if i not in reduction.axes)

"""TRANSPOSE: the axes in another order; input 1 names, for each axis of the output, the input's.

Source: TFLite kernels/transpose.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import MAXIMUM_RANK, constant_integers, resolve_axis
from tflq.interpreter.operands.movable import require_movable

TYPES = tuple(dtype for dtype in DType if 0 < dtype.bits <= 64)


@dataclass(frozen=True)
class Transpose:
    """Output axis -> input axis, of the model's own axes."""

    permutation: tuple[int, ...]


def lower(node: Node, operands: Operands) -> Transpose:
    """Decide the permutation.

    Raises:
        GraphError: no permutation of the input's axes, or one computed at run time.
        UnsupportedError: more than 8 axes, types that differ, or that TFLite does not transpose.
    """
    source = operands.input(0)
    rank = len(source.shape)
    require_movable(node, source, operands.output(), TYPES)
    if rank > MAXIMUM_RANK:
        raise UnsupportedError(f"the input has {rank} axes; TFLite transposes up to {MAXIMUM_RANK}")
    given = tuple(int(axis) for axis in constant_integers(operands, 1).reshape(-1))
    permutation = tuple(resolve_axis(axis, rank) for axis in given)
    if sorted(permutation) != list(range(rank)):
        raise GraphError(f"{given} is no permutation of the input's {rank} axes")
    return Transpose(permutation)


def run(params: Transpose, x: Array, *_permutation: Array) -> tuple[Array, ...]:
    """Run TRANSPOSE: T[S, *shape] -> T[S, *permuted shape]."""
    return (np.ascontiguousarray(x.transpose(0, *(axis + 1 for axis in params.permutation))),)

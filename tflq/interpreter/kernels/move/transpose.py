"""TRANSPOSE: the axes in another order; input 1 names, for each axis of the output, the input's.

Source: TFLite kernels/transpose.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.operand_checks import MAXIMUM_RANK, require_same_type, resolve_axis


@dataclass(frozen=True)
class Transpose:
    """Output axis -> input axis, of the model's own axes."""

    permutation: tuple[int, ...]


def lower(node: Node, operands: Operands) -> Transpose:  # noqa: ARG001
    """Decide the permutation.

    Raises:
        GraphError: no permutation of the input's axes, or one computed at run time.
        UnsupportedError: more than 8 axes, or input and output differ in type.
    """
    source = operands.input(0)
    rank = len(source.shape)
    require_same_type(source, operands.output())
    if rank > MAXIMUM_RANK:
        raise UnsupportedError(f"the input has {rank} axes; TFLite transposes up to {MAXIMUM_RANK}")
    given = tuple(int(axis) for axis in operands.constant(1).reshape(-1))
    permutation = tuple(resolve_axis(axis, rank) for axis in given)
    if sorted(permutation) != list(range(rank)):
        raise GraphError(f"{given} is no permutation of the input's {rank} axes")
    return Transpose(permutation)


def run(integers: Transpose, x: Array, *_permutation: Array) -> tuple[Array, ...]:
    """Run TRANSPOSE: T[S, *shape] -> T[S, *permuted shape]."""
    return (np.ascontiguousarray(x.transpose(0, *(axis + 1 for axis in integers.permutation))),)

"""BROADCAST_ARGS: the shape that two shapes broadcast to; both are data.

Source: TFLite kernels/broadcast_args.cc and internal/reference/broadcast_args.h.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError, InputError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.operands.checks import require_same_type, require_type
from tflq.interpreter.operands.indexing import equal_samples
from tflq.interpreter.operands.movable import INDEX_TYPES


@dataclass(frozen=True)
class BroadcastArgs:
    """Number of axes of the result."""

    rank: int


def lower(node: Node, operands: Operands) -> BroadcastArgs:  # noqa: ARG001
    """Decide the rank.

    Raises:
        GraphError: a shape that is no vector.
        UnsupportedError: other types than int32 and int64, or types that differ.
    """
    first, second = operands.input(0), operands.input(1)
    require_type(first, INDEX_TYPES)
    require_same_type(first, second, operands.output())
    if len(first.shape) != 1 or len(second.shape) != 1:
        raise GraphError(f"the operands have shapes {first.shape} and {second.shape}; both are vectors")
    return BroadcastArgs(max(first.shape[0], second.shape[0]))


def run(params: BroadcastArgs, *shapes: Array) -> tuple[Array, ...]:
    """Run BROADCAST_ARGS: int[S or 1, R1], int[S or 1, R2] -> int[S, max(R1, R2)].

    Raises:
        InputError: shapes that do not broadcast.
    """
    one = shapes[0].dtype.type(1)
    first, second = (
        np.concatenate([np.full((x.shape[0], params.rank - x.shape[1]), one), x], 1) for x in equal_samples(*shapes)
    )
    wrong = (first != second) & (first != 1) & (second != 1)
    if wrong.any():
        sample = int(np.argwhere(wrong)[0][0])
        raise InputError(
            f"sample {sample}: shapes {first[sample].tolist()}, {second[sample].tolist()} do not broadcast"
        )
    return (np.where(first == 1, second, first),)

"""SHAPE, RANK and BROADCAST_ARGS: shapes as data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError, InputError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import require_same_type, require_type
from tflq.interpreter.operands.movable import INDEX_TYPES, equal_samples
from tflq.interpreter.registry import Kernel


@dataclass(frozen=True)
class Shape:
    """What to say.

    Attributes:
        shape: the model's own shape of the input.
        dtype: numpy's name of the type of the result.
    """

    shape: tuple[int, ...]
    dtype: str


def _lower_shape(node: Node, operands: Operands) -> Shape:  # noqa: ARG001
    """Read the shape.

    Raises:
        UnsupportedError: the output is neither int32 nor int64.
    """
    dtype = require_type(operands.output(), INDEX_TYPES)
    return Shape(operands.input(0).shape, dtype.value)


def _run_shape(params: Shape, *_operands: Array) -> tuple[Array, ...]:
    """Run SHAPE: -> int[1, rank], shared by all samples."""
    return (np.array([params.shape], params.dtype).reshape(1, -1),)


@dataclass(frozen=True)
class Rank:
    """Number of the model's own axes."""

    rank: int


def _lower_rank(node: Node, operands: Operands) -> Rank:  # noqa: ARG001
    """Count the axes.

    Raises:
        UnsupportedError: the output is not int32.
    """
    require_type(operands.output(), (DType.INT32,))
    return Rank(len(operands.input(0).shape))


def _run_rank(params: Rank, *_operands: Array) -> tuple[Array, ...]:
    """Run RANK: -> int32[1], shared by all samples."""
    return (np.array([params.rank], np.int32),)


@dataclass(frozen=True)
class BroadcastArgs:
    """Number of axes of the result."""

    rank: int


def _lower_broadcast_args(node: Node, operands: Operands) -> BroadcastArgs:  # noqa: ARG001
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


def _run_broadcast_args(params: BroadcastArgs, *shapes: Array) -> tuple[Array, ...]:
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


KERNELS = {
    "shape": Kernel(_lower_shape, _run_shape,
        "the input's own shape as data", "TFLite kernels/shape.cc", shared_result=True),
    "rank": Kernel(_lower_rank, _run_rank,
        "the number of the input's axes as data", "TFLite kernels/rank.cc", shared_result=True),
    "broadcast_args": Kernel(_lower_broadcast_args, _run_broadcast_args,
        "the shape that two shapes broadcast to; both are data",
        "TFLite kernels/broadcast_args.cc and internal/reference/broadcast_args.h"),
}  # fmt: skip

"""SHAPE and RANK: the input's own shape, and the number of its axes, as data shared by all samples.

SHAPE: the input's own shape as data. Source: TFLite kernels/shape.cc.
RANK: the number of the input's axes as data. Source: TFLite kernels/rank.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import require_type
from tflq.interpreter.operands.movable import INDEX_TYPES
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


KERNELS = {
    "shape": Kernel(_lower_shape, _run_shape, shared_result=True),
    "rank": Kernel(_lower_rank, _run_rank, shared_result=True),
}

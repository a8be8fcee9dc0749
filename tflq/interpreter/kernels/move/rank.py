"""RANK: the number of the input's axes as data.

Source: TFLite kernels/rank.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import require_type

SHARED_RESULT = True


@dataclass(frozen=True)
class Rank:
    """Number of the model's own axes."""

    rank: int


def lower(node: Node, operands: Operands) -> Rank:  # noqa: ARG001
    """Count the axes.

    Raises:
        UnsupportedError: the output is not int32.
    """
    require_type(operands.output(), (DType.INT32,))
    return Rank(len(operands.input(0).shape))


def run(params: Rank, *_operands: Array) -> tuple[Array, ...]:
    """Run RANK: -> int32[1], shared by all samples."""
    return (np.array([params.rank], np.int32),)

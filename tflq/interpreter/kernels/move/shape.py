"""SHAPE: the input's own shape as data.

Source: TFLite kernels/shape.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.graph import Array, Node, Operands
from tflq.interpreter.operands.checks import require_type
from tflq.interpreter.operands.movable import INDEX_TYPES

SHARED_RESULT = True


@dataclass(frozen=True)
class Shape:
    """What to say.

    Attributes:
        shape: the model's own shape of the input.
        dtype: numpy's name of the type of the result.
    """

    shape: tuple[int, ...]
    dtype: str


def lower(node: Node, operands: Operands) -> Shape:  # noqa: ARG001
    """Read the shape.

    Raises:
        UnsupportedError: the output is neither int32 nor int64.
    """
    dtype = require_type(operands.output(), INDEX_TYPES)
    return Shape(operands.input(0).shape, dtype.value)


def run(params: Shape, *_operands: Array) -> tuple[Array, ...]:
    """Run SHAPE: -> int[1, rank], shared by all samples."""
    return (np.array([params.shape], params.dtype).reshape(1, -1),)

"""SELECT: condition ? x : y. The condition has the shape of x and y, or is a scalar, or a vector over the first axis.

Source: TFLite kernels/select.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.plain.select_v2 import shape_of_single


@dataclass(frozen=True)
class Select:
    """How the operands meet.

    Attributes:
        shape: of the result, of the model's own axes.
        condition_shape: of the condition, made to broadcast against x.
    """

    shape: tuple[int, ...]
    condition_shape: tuple[int, ...]


def lower(node: Node, operands: Operands) -> Select:  # noqa: ARG001
    """Decide the shapes.

    Raises:
        UnsupportedError: types that TFLite's kernel does not take.
        GraphError: shapes that do not fit.
    """
    single = shape_of_single(operands)
    if single is not None:
        return Select(single, single)
    condition, x, y = (operands.input(i).shape for i in range(3))
    if x != y:
        raise GraphError(f"the values have shapes {x} and {y}; SELECT takes equal ones")
    if condition == x:
        return Select(x, x)
    if condition and (len(condition) != 1 or condition[0] != x[0]):
        raise GraphError(f"the condition {condition} fits neither the values {x} nor their first axis, nor is a scalar")
    return Select(x, condition + (1,) * (len(x) - len(condition)))


def run(params: Select, condition: Array, x: Array, y: Array) -> tuple[Array, ...]:
    """Run SELECT: bool[S or 1, ...], T[S or 1, *shape] twice -> T[S, *shape]."""
    arrays = [
        array.reshape(array.shape[0], *shape)
        for array, shape in ((condition, params.condition_shape), (x, params.shape), (y, params.shape))
    ]
    return (np.where(*arrays),)

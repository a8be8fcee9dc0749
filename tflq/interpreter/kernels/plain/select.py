"""SELECT and SELECT_V2: condition ? x : y, elementwise.

SELECT: the condition has the shape of x and y, or is a scalar, or a vector over the first axis. SELECT_V2: all three
broadcast against each other. If all three and the output have one element, the output keeps its shape in the file.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import MAXIMUM_RANK, require_result, require_same_type, require_type
from tflq.interpreter.registry import Kernel
from tflq.interpreter.samples import align


@dataclass(frozen=True)
class Select:
    """How the operands meet.

    Attributes:
        shape: Shape of the result, of the model's own axes.
        condition_shape: Shape of the condition, made to broadcast against x.
    """

    shape: tuple[int, ...]
    condition_shape: tuple[int, ...]


def _lower_select(node: Node, operands: Operands) -> Select:  # noqa: ARG001
    """Decide the shapes.

    Raises:
        UnsupportedError: types that TFLite's kernel does not take.
        GraphError: shapes that do not fit.
    """
    single = _shape_of_single(operands)
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


def _run_select(params: Select, condition: Array, x: Array, y: Array) -> tuple[Array, ...]:
    """Run SELECT: bool[S or 1, ...], T[S or 1, *shape] twice -> T[S, *shape]."""
    arrays = [
        array.reshape(array.shape[0], *shape)
        for array, shape in ((condition, params.condition_shape), (x, params.shape), (y, params.shape))
    ]
    return (np.where(*arrays),)


@dataclass(frozen=True)
class SelectV2:
    """The shape of the result, of the model's own axes."""

    shape: tuple[int, ...]


def _lower_v2(node: Node, operands: Operands) -> SelectV2:  # noqa: ARG001
    """Decide the shape.

    Raises:
        UnsupportedError: types that TFLite's kernel does not take, or more axes than its loop has.
        GraphError: shapes that do not broadcast.
    """
    single = _shape_of_single(operands)
    if single is not None:
        return SelectV2(single)
    shapes = [operands.input(i).shape for i in range(3)]
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        raise GraphError(f"shapes {shapes[0]}, {shapes[1]} and {shapes[2]} do not broadcast") from None
    if len(shape) > MAXIMUM_RANK and len(set(shapes)) > 1:
        raise UnsupportedError(f"the result {shape} has more than {MAXIMUM_RANK} axes; TFLite refuses it")
    require_result(shape, operands.output().dtype)
    return SelectV2(shape)


def _run_v2(params: SelectV2, condition: Array, x: Array, y: Array) -> tuple[Array, ...]:
    """Run SELECT_V2: bool[S or 1, *shape], T[S or 1, *shape] twice -> T[S, *shape]."""
    result = np.where(*align(condition, x, y))
    return (result.reshape(result.shape[0], *params.shape),)


def _shape_of_single(operands: Operands) -> tuple[int, ...] | None:
    """Check the types; return the output's shape if all tensors have one element, else None.

    Raises:
        UnsupportedError: a condition that is not bool, values of unequal types, or of a type without fixed width.
    """
    condition, x, y, output = operands.input(0), operands.input(1), operands.input(2), operands.output()
    require_type(condition, (DType.BOOL,))
    require_same_type(x, y, output)
    if x.dtype.bits not in (8, 16, 32, 64):
        raise UnsupportedError(f"tensor '{x.name}' is {x.dtype.value}; the kernel takes types of 8, 16, 32 or 64 bits")
    return output.shape if all(t.size == 1 for t in (condition, x, y, output)) else None


KERNELS = {
    "select": Kernel(_lower_select, _run_select,
        "condition ? x : y, one condition for each element, each row of the first axis, or all",
        "TFLite kernels/select.cc"),
    "select_v2": Kernel(_lower_v2, _run_v2, "condition ? x : y, all three broadcast", "TFLite kernels/select.cc"),
}  # fmt: skip

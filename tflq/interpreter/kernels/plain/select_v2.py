"""SELECT_V2: condition ? x : y, elementwise, all three broadcast against each other.

Where all three and the output have one element, the output keeps the shape that the file gives it.
Source: TFLite kernels/select.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import MAXIMUM_RANK, require_same_type, require_type
from tflq.interpreter.operands.result_size import require_result
from tflq.interpreter.samples import align


@dataclass(frozen=True)
class Select:
    """The shape of the result, of the model's own axes."""

    shape: tuple[int, ...]


def lower(node: Node, operands: Operands) -> Select:  # noqa: ARG001
    """Decide the shape.

    Raises:
        UnsupportedError: types that TFLite's kernel does not take, or more axes than its loop has.
        GraphError: shapes that do not broadcast.
    """
    single = shape_of_single(operands)
    if single is not None:
        return Select(single)
    shapes = [operands.input(i).shape for i in range(3)]
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        raise GraphError(f"shapes {shapes[0]}, {shapes[1]} and {shapes[2]} do not broadcast") from None
    if len(shape) > MAXIMUM_RANK and len(set(shapes)) > 1:
        raise UnsupportedError(f"the result {shape} has more than {MAXIMUM_RANK} axes; TFLite refuses it")
    require_result(shape, operands.output().dtype)
    return Select(shape)


def run(params: Select, condition: Array, x: Array, y: Array) -> tuple[Array, ...]:
    """Run SELECT_V2: bool[S or 1, *shape], T[S or 1, *shape] twice -> T[S, *shape]."""
    result = np.where(*align(condition, x, y))
    return (result.reshape(result.shape[0], *params.shape),)


def shape_of_single(operands: Operands) -> tuple[int, ...] | None:
    """Check the types; return the output's shape where all tensors have one element, else None.

    Raises:
        UnsupportedError: a condition that is not bool, values of unequal types, or of a type without fixed width.
    """
    condition, x, y, output = operands.input(0), operands.input(1), operands.input(2), operands.output()
    require_type(condition, (DType.BOOL,))
    require_same_type(x, y, output)
    if x.dtype.bits not in (8, 16, 32, 64):
        raise UnsupportedError(f"tensor '{x.name}' is {x.dtype.value}; the kernel takes types of 8, 16, 32 or 64 bits")
    return output.shape if all(t.size == 1 for t in (condition, x, y, output)) else None

"""ADD_N and CUMSUM: sums of tensors, and running sums.

ADD_N: TFLite splits four inputs and more among its threads; this is the result of one.

CUMSUM: `exclusive` leaves out the element itself, `reverse` runs from the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import Elementwise, lower_unary
from tflq.interpreter.operands.checks import require_same_type, require_type, resolve_axis
from tflq.interpreter.registry import Kernel


def _lower_add_n(node: Node, operands: Operands) -> Elementwise:  # noqa: ARG001
    """Check the operands.

    Raises:
        UnsupportedError: other or unequal types.
        GraphError: fewer than two inputs, or unequal shapes.
    """
    count = len(operands.inputs)
    if count < 2:
        raise GraphError(f"{count} inputs; add_n takes two or more")
    tensors = [operands.input(i) for i in range(count)]
    require_same_type(*tensors)
    for tensor in tensors:
        if tensor.shape != tensors[0].shape:
            raise GraphError(f"inputs have shapes {tensors[0].shape} and {tensor.shape}; add_n takes equal ones")
    return lower_unary(operands, (DType.FLOAT32, DType.INT32))


def _run_add_n(params: Elementwise, *arrays: Array) -> tuple[Array, ...]:  # noqa: ARG001
    """Run ADD_N: T[S or 1, *shape] of each -> T[S, *shape]."""
    with np.errstate(over="ignore", invalid="ignore"):
        return (reduce(np.add, arrays),)


@dataclass(frozen=True)
class Cumsum:
    """The axis, counted in the model's own shape, and the options."""

    axis: int
    exclusive: bool
    reverse: bool


def _lower_cumsum(node: Node, operands: Operands) -> Cumsum:
    """Read the axis from input 1.

    Raises:
        UnsupportedError: a type that TFLite's kernel does not take.
        GraphError: an axis out of range, more than one, or computed at run time.
    """
    lower_unary(operands, (DType.INT32, DType.INT64, DType.FLOAT32))
    require_type(operands.input(1), (DType.INT32,))
    given = operands.constant(1).reshape(-1)
    if given.size != 1:
        raise GraphError(f"input 1 names {given.size} axes; cumsum takes one")
    axis = resolve_axis(int(given[0]), len(operands.input(0).shape))
    return Cumsum(axis, node.attributes.boolean("exclusive", False), node.attributes.boolean("reverse", False))


def _run_cumsum(params: Cumsum, x: Array, *_axis: Array) -> tuple[Array, ...]:
    """Run CUMSUM: T[S, *shape] -> T[S, *shape]."""
    moved = np.moveaxis(x, params.axis + 1, 0)
    moved = moved[::-1] if params.reverse else moved
    sums = np.zeros((moved.shape[0] + 1, *moved.shape[1:]), x.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        for i, row in enumerate(moved):
            np.add(sums[i], row, out=sums[i + 1])
    result = sums[:-1] if params.exclusive else sums[1:]
    result = result[::-1] if params.reverse else result
    return (np.ascontiguousarray(np.moveaxis(result, 0, params.axis + 1)),)


KERNELS = {
    "add_n": Kernel(_lower_add_n, _run_add_n,
        "the sum of all inputs in their order, which have one shape; int32 wraps", "TFLite kernels/add_n.cc"),
    "cumsum": Kernel(_lower_cumsum, _run_cumsum,
        "running sums along one axis, in order; int32 and int64 wrap", "TFLite kernels/cumsum.cc"),
}  # fmt: skip

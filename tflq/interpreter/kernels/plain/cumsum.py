"""CUMSUM: running sums along one axis, in order; int32 and int64 wrap.

`exclusive` leaves out the element itself, `reverse` runs from the end. Source: TFLite kernels/cumsum.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.kernels.plain.elementwise import lower_unary
from tflq.interpreter.operands.checks import require_type, resolve_axis


@dataclass(frozen=True)
class Cumsum:
    """The axis, counted in the model's own shape, and the options."""

    axis: int
    exclusive: bool
    reverse: bool


def lower(node: Node, operands: Operands) -> Cumsum:
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


def run(params: Cumsum, x: Array, *_axis: Array) -> tuple[Array, ...]:
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

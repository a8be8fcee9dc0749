"""UNPACK: one output for each index of an axis, which goes.

Source: TFLite kernels/unpack.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import resolve_axis
from tflq.interpreter.operands.movable import require_movable, require_same_quantisation

TYPES = (
    DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16, DType.UINT8, DType.INT8, DType.INT16, DType.INT32, DType.BOOL,
    DType.FLOAT8_E4M3FN, DType.FLOAT8_E5M2,
)  # fmt: skip


@dataclass(frozen=True)
class Unpack:
    """The axis that goes, counted from 0 in the model's own shape."""

    axis: int


def lower(node: Node, operands: Operands) -> Unpack:
    """Decide the axis.

    Raises:
        GraphError: an axis out of range, or another number of outputs than its length.
        UnsupportedError: types or quantisations that differ, or that TFLite does not unpack.
    """
    source = operands.input(0)
    for output in operands.outputs:
        require_movable(node, source, output, TYPES)
        require_same_quantisation(node, source, output)
    axis = resolve_axis(node.attributes.integer("axis", 0), len(source.shape))
    count = node.attributes.integer("num", len(operands.outputs))
    if not count == len(operands.outputs) == source.shape[axis] or not source.size:
        raise GraphError(
            f"num is {count}, there are {len(operands.outputs)} outputs, and axis {axis} of {source.shape} has length "
            f"{source.shape[axis]}; all three are equal, and no axis has length 0"
        )
    return Unpack(axis)


def run(params: Unpack, x: Array) -> tuple[Array, ...]:
    """Run UNPACK: T[S, *shape] -> one T[S, *shape without the axis] for each index, views of the input."""
    return tuple(np.moveaxis(x, params.axis + 1, 0))

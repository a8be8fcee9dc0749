"""SPLIT: equal parts along the axis that input 0 names; input 1 is the tensor.

Source: TFLite kernels/split.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.kernels.move.split_v import TYPES
from tflq.interpreter.operands.checks import constant_integers, resolve_axis
from tflq.interpreter.operands.movable import require_movable


@dataclass(frozen=True)
class Split:
    """Where to cut.

    Attributes:
        axis: counted from 0 in the model's own shape.
        parts: number of outputs.
    """

    axis: int
    parts: int


def lower(node: Node, operands: Operands) -> Split:
    """Decide axis and parts.

    Raises:
        GraphError: parts that are not equal, another number of outputs, an axis out of range or computed at run time.
        UnsupportedError: input and outputs differ in type, or TFLite does not split it.
    """
    source = operands.input(1)
    for output in operands.outputs:
        require_movable(node, source, output, TYPES)
    parts = node.attributes.integer("num_splits", 0)
    given = constant_integers(operands, 0).reshape(-1)
    if given.size != 1:
        raise GraphError(f"input 0 names {given.size} axes; split takes one")
    axis = resolve_axis(int(given[0]), len(source.shape))
    if parts < 1 or parts != len(operands.outputs):
        raise GraphError(f"num_splits is {parts} and there are {len(operands.outputs)} outputs; they must be equal")
    if source.shape[axis] % parts:
        raise GraphError(f"axis {axis} of {source.shape} does not split into {parts} equal parts")
    return Split(axis, parts)


def run(params: Split, _axis: Array, x: Array) -> tuple[Array, ...]:
    """Run SPLIT: T[S, *shape] -> that many T[S, *part], views of the input."""
    return tuple(np.split(x, params.parts, params.axis + 1))

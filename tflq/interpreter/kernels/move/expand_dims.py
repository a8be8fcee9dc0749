"""EXPAND_DIMS: one more axis of length 1, before the axis that input 1 names.

Source: TFLite kernels/expand_dims.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array, Node, Operands
from tflq.interpreter.operands.checks import constant_integers, require_same_type, resolve_axis


@dataclass(frozen=True)
class ExpandDims:
    """Where the new axis stands among the model's own axes of the output."""

    axis: int


def lower(node: Node, operands: Operands) -> ExpandDims:  # noqa: ARG001
    """Decide the axis.

    Raises:
        GraphError: an axis out of range, more than one, or computed at run time.
        UnsupportedError: input and output differ in type.
    """
    source = operands.input(0)
    require_same_type(source, operands.output())
    given = constant_integers(operands, 1).reshape(-1)
    if given.size != 1:
        raise GraphError(f"input 1 names {given.size} axes; expand_dims takes one")
    return ExpandDims(resolve_axis(int(given[0]), len(source.shape) + 1))


def run(params: ExpandDims, x: Array, *_axis: Array) -> tuple[Array, ...]:
    """Run EXPAND_DIMS: T[S, *shape] -> T[S, *shape with a 1]."""
    return (np.expand_dims(x, params.axis + 1),)

"""DENSIFY: a constant that the file holds sparse, as it is dense; the reader of files has unfolded it already.

Source: TFLite kernels/densify.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.movable import require_movable

TYPES = (DType.FLOAT32, DType.FLOAT16, DType.INT8)


@dataclass(frozen=True)
class Densify:
    """Nothing is left to decide."""


def lower(node: Node, operands: Operands) -> Densify:
    """Check the type.

    Raises:
        GraphError: the input is computed at run time.
        UnsupportedError: a type that TFLite does not densify.
    """
    require_movable(node, operands.input(0), operands.output(), TYPES)
    operands.constant(0)
    return Densify()


def run(params: Densify, x: Array) -> tuple[Array, ...]:  # noqa: ARG001
    """Run DENSIFY: T[1, *shape] -> T[1, *shape]."""
    return (x,)

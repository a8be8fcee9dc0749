"""What elementwise operators of one float32 tensor share."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.graph import DType, Node, Operands
from tflq.interpreter.operands.checks import require_same_type, require_type


@dataclass(frozen=True)
class Unary:
    """An operator without numbers of its own."""


def lower_unary(node: Node, operands: Operands) -> Unary:  # noqa: ARG001
    """Check the types.

    Raises:
        UnsupportedError: input or output is not float32.
    """
    require_type(operands.input(0), (DType.FLOAT32,))
    require_same_type(operands.input(0), operands.output())
    return Unary()

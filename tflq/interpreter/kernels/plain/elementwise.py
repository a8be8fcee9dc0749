"""What elementwise operators without options share: their operands are checked, nothing else is to decide."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from tflq.graph import DType, Operands
from tflq.interpreter.operands.checks import require_broadcast, require_same_type, require_type


@dataclass(frozen=True)
class Elementwise:
    """An operator without numbers of its own: the type of its first input."""

    dtype: DType


def lower_unary(operands: Operands, allowed: Collection[DType], result: DType | None = None) -> Elementwise:
    """Check one input and the output.

    Args:
        operands: of the node.
        allowed: types of the input.
        result: type of the output where it is not the input's.

    Raises:
        UnsupportedError: another type.
    """
    dtype = require_type(operands.input(0), allowed)
    _require_result(operands, result)
    return Elementwise(dtype)


def lower_binary(operands: Operands, allowed: Collection[DType], result: DType | None = None) -> Elementwise:
    """Check two inputs of equal type, whose shapes broadcast, and the output.

    Args:
        operands: of the node.
        allowed: types of the inputs.
        result: type of the output where it is not the inputs'.

    Raises:
        UnsupportedError: other or unequal types, or shapes that TFLite's loop does not take.
        GraphError: shapes that do not broadcast.
    """
    first, second = operands.input(0), operands.input(1)
    dtype = require_type(first, allowed)
    require_same_type(first, second)
    require_broadcast(first, second)
    _require_result(operands, result)
    return Elementwise(dtype)


def _require_result(operands: Operands, result: DType | None) -> None:
    if result is None:
        require_same_type(operands.input(0), operands.output())
    else:
        require_type(operands.output(), (result,))

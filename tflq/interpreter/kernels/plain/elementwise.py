"""Lowering and rows of elementwise operators without options: the lowering only checks their operands."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np

from tflq.errors import GraphError
from tflq.graph import Array, DType, Node, Operands
from tflq.interpreter.operands.checks import require_broadcast, require_same_type, require_type
from tflq.interpreter.registry import Kernel
from tflq.interpreter.samples import align

UnaryFunction = Callable[[DType, Array], Array]
BinaryFunction = Callable[[DType, Array, Array], Array]


@dataclass(frozen=True)
class Elementwise:
    """An operator without additional numbers: the type of its first input."""

    dtype: DType


def lower_unary(operands: Operands, allowed: Collection[DType], result: DType | None = None) -> Elementwise:
    """Check one input and the output.

    Args:
        operands: Operands of the node.
        allowed: types of the input.
        result: type of the output if it is not the input's.

    Raises:
        UnsupportedError: another type.
    """
    dtype = require_type(operands.input(0), allowed)
    _require_result(operands, result)
    return Elementwise(dtype)


def lower_binary(operands: Operands, allowed: Collection[DType], result: DType | None = None) -> Elementwise:
    """Check two inputs of equal type and broadcastable shapes, and the output.

    Args:
        operands: Operands of the node.
        allowed: types of the inputs.
        result: type of the output if it is not the inputs'.

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


def require_equal_shapes(operands: Operands) -> None:
    """Check that both inputs have the same shape.

    Raises:
        GraphError: they do not.
    """
    first, second = operands.input(0), operands.input(1)
    if first.shape != second.shape:
        raise GraphError(f"shapes {first.shape} and {second.shape} differ; the operator does not broadcast")


def unary(allowed: Collection[DType], function: UnaryFunction, summary: str, source: str) -> Kernel:
    """Return the row of y = function(type, x): T[S, *shape] -> T[S, *shape].

    Args:
        allowed: types of the tensors; other types are refused as in `lower_unary`.
        function: computes y in the tensor's type.
        summary: Summary of the kernel.
        source: Source of the kernel.
    """

    def lower(node: Node, operands: Operands) -> Elementwise:  # noqa: ARG001
        return lower_unary(operands, allowed)

    def run(params: Elementwise, x: Array) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            return (function(params.dtype, x),)

    return Kernel(lower, run, summary, source)


def binary(
    allowed: Collection[DType], function: BinaryFunction, summary: str, source: str, broadcasts: bool = True
) -> Kernel:
    """Return the row of z = function(type, x, y): T[S or 1, *shape] twice, shapes broadcast -> T[S, *shape].

    Args:
        allowed: types of the tensors; other types are refused as in `lower_binary`.
        function: computes z in the tensors' type, from arrays of equal rank.
        summary: Summary of the kernel.
        source: Source of the kernel.
        broadcasts: whether TFLite broadcasts here; else unequal shapes are refused as in `require_equal_shapes`.
    """

    def lower(node: Node, operands: Operands) -> Elementwise:  # noqa: ARG001
        if not broadcasts:
            require_equal_shapes(operands)
        return lower_binary(operands, allowed)

    def run(params: Elementwise, first: Array, second: Array) -> tuple[Array, ...]:
        with np.errstate(all="ignore"):
            return (function(params.dtype, *align(first, second)),)

    return Kernel(lower, run, summary, source)


def _require_result(operands: Operands, result: DType | None) -> None:
    if result is None:
        require_same_type(operands.input(0), operands.output())
    else:
        require_type(operands.output(), (result,))

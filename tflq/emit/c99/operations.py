"""numpy's operations as operators of C and calls of helpers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from tflq.emit.c99.bounds import bounds_of_type
from tflq.emit.c99.expression import Constant, Expression, Operation
from tflq.emit.c99.words import atom, bare, number, stored_type
from tflq.errors import UnsupportedError


class TextOf(Protocol):
    """Text of an expression in a C type."""

    def __call__(self, expression: Expression, wanted: str = "") -> str:
        """Return it."""


class HelperOf(Protocol):
    """Name of a helper for a C type."""

    def __call__(self, name: str, c_type: str) -> str:
        """Return it."""


_INFIX: dict[object, str] = {
    np.add: "+",
    np.subtract: "-",
    np.multiply: "*",
    np.divide: "/",
    np.right_shift: ">>",
    np.bitwise_and: "&",
    np.bitwise_or: "|",
    np.bitwise_xor: "^",
    np.less: "<",
    np.less_equal: "<=",
    np.greater: ">",
    np.greater_equal: ">=",
    np.equal: "==",
    np.not_equal: "!=",
    np.logical_and: "&&",
    np.logical_or: "||",
}
_COMPARED = {np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal}
_TRUTH = {np.logical_and, np.logical_or, np.logical_not}
_NAMED: dict[object, str] = {
    np.maximum: "larger",
    np.minimum: "smaller",
    np.clip: "clamp",
    np.absolute: "magnitude",
    np.sign: "sign",
    np.floor_divide: "floor_divide",
    np.remainder: "modulo",
    np.rint: "round_half_even",
    np.round: "round_half_even",
    np.trunc: "cut",
    np.floor: "floor",
    np.ceil: "ceil",
    np.copysign: "copy_sign",
    np.nan_to_num: "finite",
}


def operation_text(expression: Operation, of: TextOf, helper: HelperOf) -> str:
    """Return the text of an operation of numbers.

    Args:
        expression: the operation.
        of: returns the text of an operand in a C type; in its own where none is named.
        helper: returns the name of a helper for a C type.

    Raises:
        UnsupportedError: it has no form in C.
    """
    operation, operands = expression.operation, expression.operands
    kind = expression.c_type
    if operation == "cast":
        return _cast(expression, of)
    if operation == "view":
        return _viewed(expression, of)
    if operation == "select":
        condition = atom(of(operands[0]))
        return f"({condition} ? {of(operands[1], kind)} : {of(operands[2], kind)})"
    if operation in _TRUTH:
        words = [f"({bare(of(x))} != 0)" for x in operands]
        return f"(!{words[0]})" if operation is np.logical_not else f"({_INFIX[operation].join(words)})"
    inner = _computed_in(expression)
    if operation is np.nan_to_num:
        operands = operands[:1]  # its options choose what it does in place
        if not operands[0].is_real:
            return of(operands[0], kind)
    given = [of(x, inner) for x in operands]
    if operation in _COMPARED:
        return f"({atom(given[0])} {_INFIX[operation]} {atom(given[1])})"
    text = _arithmetic(helper, operation, operands, given, inner)
    if expression.wraps:
        unsigned = "u" if expression.dtype.kind == "u" else ""
        return f"({unsigned}int{8 * expression.dtype.itemsize}_t){atom(text)}"
    return text if inner == kind else f"({kind}){atom(text)}"


def _arithmetic(
    helper: HelperOf, operation: object, operands: Sequence[Expression], given: list[str], inner: str
) -> str:
    if operation in _NAMED:
        return f"{helper(_NAMED[operation], inner)}({', '.join(map(bare, given))})"
    if operation in _INFIX:
        first = f"({inner}){atom(given[0])}" if _must_widen(operation, operands, inner) else atom(given[0])
        if operation in (np.add, np.subtract) and given[1].startswith("-") and given[1][1:].isdigit():
            return f"({first} {'-' if operation is np.add else '+'} {given[1][1:]})"
        return f"({first} {_INFIX[operation]} {atom(given[1])})"
    if operation is np.left_shift:
        if isinstance(operands[1], Constant) and not operands[1].order:
            return f"({_widened(given[0], inner)} * {number(1 << int(operands[1].values), inner)})"
        return f"({_widened(given[0], inner)} * (({inner})1 << {atom(given[1])}))"
    if operation in (np.negative, np.invert):
        return f"({'-' if operation is np.negative else '~'}{atom(given[0])})"
    if operation is np.square:
        return f"({_widened(given[0], inner)} * {atom(given[0])})"
    if operation is np.isnan:
        return f"({given[0]} != {given[0]})"
    raise UnsupportedError(f"numpy's {getattr(operation, '__name__', operation)} has no form in C")


def _cast(expression: Operation, of: TextOf) -> str:
    (source,) = expression.operands
    kind = expression.c_type
    if expression.dtype.kind == "b":
        return f"({bare(of(source))} != 0)"
    if source.is_real or expression.is_real:
        text = of(source, stored_type(source.dtype) if source.is_real else kind)
        whole = f"({'int64_t' if not expression.is_real else kind}){atom(text)}" if source.is_real else text
        if expression.is_real or expression.dtype.itemsize == 8:
            return whole
        return f"({stored_type(expression.dtype)}){atom(whole)}"
    if not expression.wraps and not _narrows(source, expression.dtype):
        return of(source, kind)
    return f"({stored_type(expression.dtype)}){atom(of(source))}"


def _viewed(expression: Operation, of: TextOf) -> str:
    (source,) = expression.operands
    if source.is_real or expression.is_real or source.dtype.itemsize != expression.dtype.itemsize:
        raise UnsupportedError("bits are read as another type")
    return f"({stored_type(expression.dtype)}){atom(of(source))}"


def _computed_in(expression: Operation) -> str:
    """Return the type in which an operation is computed: that of the result, or of wider operands."""
    kinds = {x.c_type for x in expression.operands}
    if expression.operation in _COMPARED or expression.operation is np.isnan:
        found = kinds
    elif expression.is_real:
        return "double" if expression.dtype.itemsize == 8 else "float"
    else:
        found = kinds | {expression.c_type if not expression.wraps else "int64_t"}
    for kind in ("double", "float", "int64_t"):
        if kind in found:
            return kind
    return "int32_t"


def _must_widen(operation: object, operands: Sequence[Expression], inner: str) -> bool:
    return (
        inner == "int64_t"
        and operation in (np.add, np.subtract, np.multiply)
        and all(x.c_type == "int32_t" for x in operands)
    )


def _widened(text: str, inner: str) -> str:
    return f"({inner}){atom(text)}"


def _narrows(source: Expression, dtype: np.dtype[np.generic]) -> bool:
    low, high = bounds_of_type(dtype)
    return source.low < low or source.high > high

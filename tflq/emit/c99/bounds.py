"""The least and largest value of an operation of integers, and whole numbers that numpy holds in floating point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from tflq.emit.c99.expression import Constant, Expression, Number, Operation
from tflq.emit.c99.recorder import Call
from tflq.errors import UnsupportedError

Bounds = tuple[Number, Number]
UNKNOWN: Bounds = (-(1 << 63), (1 << 63) - 1)


def bounds_of_type(dtype: np.dtype[np.generic]) -> Bounds:
    """Return the bounds of a type; those of floating-point numbers are infinite."""
    if dtype.kind == "b":
        return 0, 1
    if dtype.kind in "iu":
        bits = 8 * dtype.itemsize
        return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if dtype.kind == "i" else (0, (1 << bits) - 1)
    return -np.inf, np.inf


def bounds_of(operation: object, operands: Sequence[Expression], dtype: np.dtype[np.generic]) -> Bounds:
    """Return the bounds of the exact result, which may lie outside the type; those of the type where none are known.

    A primitive with an argument `bits` gives integers of that many bits.
    """
    if dtype.kind == "f" or any(x.is_real for x in operands):
        return bounds_of_type(dtype)
    if isinstance(operation, Call) and "bits" in operation.fixed:
        return bounds_of_type(np.dtype(f"int{operation.fixed['bits']}"))
    rule = _RULES.get(operation)
    found = None if rule is None else rule([(x.low, x.high) for x in operands])
    return bounds_of_type(dtype) if found is None else found


def _corners(function: Callable[[Number, Number], Number]) -> Callable[[Sequence[Bounds]], Bounds]:
    def bounds(given: Sequence[Bounds]) -> Bounds:
        found = [function(a, b) for a in given[0] for b in given[1]]
        return min(found), max(found)

    return bounds


def _shift(given: Sequence[Bounds], left: bool) -> Bounds | None:
    if not (given[1][0] >= 0 and given[1][1] < 63):
        return None
    counts = (int(given[1][0]), int(given[1][1]))
    found = [int(a) << n if left else int(a) >> n for a in given[0] for n in counts]
    return min(found), max(found)


def _masked(given: Sequence[Bounds]) -> Bounds | None:
    known = [high for low, high in given if low >= 0]
    return (0, min(known)) if known else None


def _clamped(given: Sequence[Bounds]) -> Bounds:
    (low, high), (least, _), (_, most) = given
    return min(max(low, least), most), max(min(high, most), least)


def _magnitude(given: Sequence[Bounds]) -> Bounds:
    low, high = given[0]
    return (0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))


def _either(given: Sequence[Bounds]) -> Bounds:
    return min(given[1][0], given[2][0]), max(given[1][1], given[2][1])


_RULES: dict[object, Callable[[Sequence[Bounds]], Bounds | None]] = {
    np.add: _corners(lambda a, b: a + b),
    np.subtract: _corners(lambda a, b: a - b),
    np.multiply: _corners(lambda a, b: a * b),
    np.maximum: _corners(max),
    np.minimum: _corners(min),
    np.left_shift: lambda given: _shift(given, True),
    np.right_shift: lambda given: _shift(given, False),
    np.bitwise_and: _masked,
    np.negative: lambda given: (-given[0][1], -given[0][0]),
    np.absolute: _magnitude,
    np.clip: _clamped,
    "select": _either,
    "cast": lambda given: given[0],
}


WHOLE = (np.add, np.subtract, np.multiply, np.clip, np.maximum, np.minimum, np.negative, np.absolute)
"""Operations that give whole numbers of whole numbers."""
WHOLE_ALREADY = (np.rint, np.floor, np.ceil, np.trunc, np.round)
"""Operations that leave whole numbers as they are."""


def called(label: str, call: Call, operands: tuple[Expression, ...]) -> Operation:
    """Return a call of a primitive whose C is of whole numbers."""
    if any(x.is_real for x in operands):
        raise UnsupportedError(f"{call.rule.function.__name__} of real numbers has no form in C")
    used = frozenset().union(*(x.axes for x in operands))
    limit = 1 << 52
    return Operation(np.dtype(np.int64), -limit, limit, used, call, operands, label, False)


def as_whole(
    operation: object, operands: tuple[Expression, ...], dtype: np.dtype[np.generic]
) -> tuple[Expression, ...] | None:
    """Return the operands as integers where floating point holds whole numbers, exactly; else None."""
    if dtype.kind != "f" or operation not in (*WHOLE, *WHOLE_ALREADY, "cast", "select"):
        return None
    found = tuple(_whole_constant(x) for x in operands)
    if any(x.is_real for x in found):
        return None
    low, high = bounds_of(operation, found, np.dtype(np.int64))
    limit = 1 << (53 if dtype.itemsize == 8 else 24)
    return found if -limit <= low and high <= limit else None


def _whole_constant(x: Expression) -> Expression:
    if not (isinstance(x, Constant) and x.is_real and np.isfinite(x.values).all()):
        return x
    if not (x.values == np.trunc(x.values)).all() or (np.abs(x.values) > 1 << 53).any():
        return x
    values = x.values.astype(np.int64)
    return replace(x, dtype=values.dtype, low=int(values.min()), high=int(values.max()), values=values)


def smallest_type(low: float, high: float) -> np.dtype[np.generic]:
    """Return the smallest type of integers that holds both."""
    for name in ("int8", "uint8", "int16", "uint16", "int32"):
        found = np.iinfo(name)
        if found.min <= low and high <= found.max:
            return np.dtype(name)
    return np.dtype(np.int64)

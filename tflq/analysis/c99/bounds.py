"""The least and largest value of an operation of integers, from those of its operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tflq.analysis.c99.expression import Expression, Number

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
    """Return the bounds of the exact result, which may lie outside the type; those of the type where none are known."""
    if dtype.kind == "f" or any(x.is_real for x in operands):
        return bounds_of_type(dtype)
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

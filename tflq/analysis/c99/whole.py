"""Whole numbers that numpy holds in floating point: in C they are integers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflq.analysis.c99.bounds import bounds_of
from tflq.analysis.c99.expression import Constant, Expression, Operation
from tflq.analysis.c99.recorder import Call
from tflq.errors import UnsupportedError

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

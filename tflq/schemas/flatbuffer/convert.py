"""Checks of the values that a caller sets: each returns the value as it is kept, or says what is allowed."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from tflq.errors import FormatError
from tflq.schemas.flatbuffer.scalars import BOOL, Scalar


def number(value: object, scalar: Scalar, where: str) -> bool | int | float:
    """Return a bool, int or float of the type; a float is rounded to the type's precision.

    Raises:
        FormatError: The value is of another kind, or outside the range of the type.
    """
    if scalar is BOOL:
        if isinstance(value, (bool, np.bool_)):
            return bool(value)
        raise FormatError(f"{where}: found {value!r}; allowed are True and False")
    if scalar.low is None or scalar.high is None:
        return _real(value, scalar, where)
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and scalar.low <= value <= scalar.high:
        return int(value)
    raise FormatError(f"{where}: found {value!r}; allowed are integers from {scalar.low} to {scalar.high}")


def _real(value: object, scalar: Scalar, where: str) -> float:
    if isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool):
        try:
            return float(scalar.codec.unpack(scalar.codec.pack(value))[0])
        except OverflowError:
            pass
    raise FormatError(f"{where}: found {value!r}; allowed are numbers within the range of {scalar.dtype}")


def member(value: object, members: type[IntEnum], where: str) -> IntEnum:
    """Return the enum member with this value.

    Raises:
        FormatError: There is none.
    """
    if type(value) is members:
        return value
    foreign = isinstance(value, IntEnum) or not isinstance(value, (int, np.integer))
    if foreign or int(value) not in members._value2member_map_:  # type: ignore[call-overload]
        raise FormatError(f"{where}: found {value!r}; allowed are members of {members.__name__}")
    return members(int(value))  # type: ignore[call-overload]


def text(value: object, where: str) -> str:
    """Return the string.

    Raises:
        FormatError: The value is no string, or cannot be written as UTF-8.
    """
    if not isinstance(value, str):
        raise FormatError(f"{where}: found {value!r}; allowed is a str")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise FormatError(f"{where}: found {value!r}; allowed is text that UTF-8 can hold ({error.reason})") from None
    return value


def items(value: object, where: str) -> Iterable[object]:
    """Return the sequence.

    Raises:
        FormatError: The value is a string, or nothing one can iterate over.
    """
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise FormatError(f"{where}: found {value!r}; allowed is a list")
    return value


def instance(value: object, expected: type, where: str) -> object:
    """Return the table.

    Raises:
        FormatError: It is of another class.
    """
    if not isinstance(value, expected):
        raise FormatError(f"{where}: found {type(value).__name__}; allowed is {expected.__name__}")
    return value


def array(value: NDArray[np.generic], scalar: Scalar, where: str) -> NDArray[np.generic]:
    """Return the array, contiguous and of the type.

    Raises:
        FormatError: It has not one dimension, or holds values that the type cannot.
    """
    if value.ndim != 1 or (value.dtype != scalar.dtype and not _fits(value, scalar)):
        raise FormatError(
            f"{where}: found an array {value.dtype}{list(value.shape)}; "
            f"allowed is a one-dimensional array whose values {scalar.dtype} can hold"
        )
    return np.ascontiguousarray(value, scalar.dtype)


def _fits(value: NDArray[np.generic], scalar: Scalar) -> bool:
    if scalar.low is None or scalar.high is None:
        return value.dtype.kind in "iuf"
    if value.dtype.kind not in "iu" or scalar is BOOL:
        return value.size == 0
    return value.size == 0 or (int(value.min()) >= scalar.low and int(value.max()) <= scalar.high)

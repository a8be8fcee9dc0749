"""Arguments as LiteRT's binding takes them: what is no integer or no truth value is a TypeError."""

from __future__ import annotations

from typing import SupportsIndex, SupportsInt

from tflq.errors import OptionError
from tflq.tflite_interpreter.errors import also

_INT32 = range(-(2**31), 2**31)


@also(TypeError)
def integer(value: object, what: str) -> int:
    """Return an integer of any kind as an int: a float is none, nor is what 32 bits do not hold.

    Raises:
        OptionError: it is none; also a TypeError.
    """
    if isinstance(value, float) or not isinstance(value, (SupportsIndex, SupportsInt)):
        raise OptionError(f"{what} is {type(value).__name__} {value!r}; it must be an integer")
    number = int(value)
    if number not in _INT32:
        raise OptionError(f"{what} is {number}; it must be an integer of 32 bits")
    return number


@also(TypeError)
def flag(value: object, what: str) -> bool:
    """Return a truth value: bool, number or None; texts and lists are none.

    Raises:
        OptionError: it is none; also a TypeError.
    """
    if value is not None and not hasattr(value, "__bool__"):
        raise OptionError(f"{what} is {type(value).__name__} {value!r}; it must be True or False")
    return bool(value)

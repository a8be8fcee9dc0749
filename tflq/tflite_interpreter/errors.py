"""Errors and arguments as LiteRT has them, so that a script's `except ValueError` goes on working.

A TflqError that leaves the interface is raised again as a class of the same name, below the old one and the built-in
one: an InputError of `set_tensor` is an InputError and a ValueError. Of several blocks the innermost decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import SupportsIndex, SupportsInt

from tflq.errors import OptionError, TflqError

_KINDS = (ValueError, RuntimeError, TypeError, AttributeError, OSError)


@contextmanager
def also(kind: type[Exception]) -> Iterator[None]:
    """Let errors of this block, or of the function that this decorates, be of a built-in kind as well."""
    try:
        yield
    except TflqError as error:
        if isinstance(error, _KINDS):
            raise
        raise _made(type(error), kind, error.args, vars(error)) from error.__cause__


def _made(
    error: type[TflqError], kind: type[Exception], args: tuple[object, ...], fields: dict[str, object]
) -> TflqError:
    both = _both(error, kind)
    made = both.__new__(both, *args)
    vars(made).update(fields)
    return made


def _both(error: type[TflqError], kind: type[Exception]) -> type[TflqError]:
    def reduced(self: TflqError) -> tuple[object, ...]:
        return _made, (error, kind, self.args, vars(self))

    return type(error.__name__, (error, kind), {"__module__": error.__module__, "__reduce__": reduced})


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

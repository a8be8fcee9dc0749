"""Errors that are also what LiteRT raises in the same place, so that a script's `except ValueError` still holds.

A TflqError that leaves the interface is raised again as a class of the same name, below the old one and the built-in
one: an InputError of `set_tensor` is an InputError and a ValueError. Of several blocks the innermost decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tflq.errors import TflqError

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

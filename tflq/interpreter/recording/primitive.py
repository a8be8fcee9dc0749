"""Primitives: functions that a recorder keeps as one operation, with a name and a formula, and not by their statements.

A primitive is written once, over arrays. The engine runs it; `explain` runs the same code with a recorder switched on
(tape.py) and shows the primitive's label and formula; a third reading, in C, finds its text under the same name. While
no recorder is active, a call costs one additional look at a number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import Any, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., Any])
Ids = NDArray[np.int64]
"""Numbers of elements on a tape; -1 where there is none."""


@dataclass(frozen=True)
class Taps:
    """Sources of one element of a sum, a maximum or another reduction.

    Attributes:
        sources: the elements; -1 for a tap outside the image.
        factors: Factors of the sources, in the same shape; None if they are only added or compared.
        outside: Value of taps outside; None if they are skipped.
        note: Description of the positions of the taps.
    """

    sources: Ids
    factors: NDArray[Any] | None = None
    outside: int | float | None = None
    note: str = ""


TapsOf = Callable[[tuple[int, ...]], Taps]
"""Index of an output element -> its taps."""


@dataclass(frozen=True)
class Primitive:
    """A function with its description.

    Attributes:
        function: over arrays; its operands broadcast, unless it has taps.
        label: Label of the step: "rounded".
        formula: Formula with the function's parameters in braces: "RDBP({x}, {exponent})".
        taps: Function for sums and maxima: takes the function's arguments that it names, with the numbers of elements
            in place of `x`.
        body: the statements of the function in C, if its Python has no form there or computes integers in floating
            point: int64_t from int64_t, below 2^52.
    """

    function: Callable[..., Any]
    label: str
    formula: str
    taps: Callable[..., TapsOf] | None = None
    body: str = ""


Compute = Callable[..., NDArray[Any]]
"""Quantized values -> entries of a table; two arrays of quantized values for a table of pairs."""


class Recorder(Protocol):
    """Interface of a recorder of operations that also knows the functions of tables."""

    def call(self, rule: Primitive, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a primitive and keep it as one operation."""

    def move(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """Run a function that moves elements of its first argument, and move their numbers in the same way."""

    def entries(self, table: NDArray[Any], index: Any) -> Any:
        """Read entries of a constant table, and keep which."""

    def stands(self, table: NDArray[Any]) -> bool:
        """Whether a table is read, rather than the rule run that it was made of."""

    def computation(self, table: NDArray[Any]) -> Compute | None:
        """Return the function that computed a table's entries; None if it is not known."""


_active = 0
"""How many recorders there are, in any thread: where there is none, nothing else is looked at."""
_recorder: ContextVar[Recorder | None] = ContextVar("recorder", default=None)


def recorder() -> Recorder | None:
    """Return the recorder of this thread's operations; None if there is none, as in every run of the engine."""
    return _recorder.get() if _active else None


@contextmanager
def recorded_by(found: Recorder | None) -> Iterator[None]:
    """Record the block; None suspends recording."""
    global _active
    _active += 1
    before = _recorder.set(found)
    try:
        yield
    finally:
        _recorder.reset(before)
        _active -= 1


_tables: ContextVar[list[tuple[NDArray[Any], Compute]] | None] = ContextVar("tables", default=None)


@contextmanager
def noting_tables() -> Iterator[list[tuple[NDArray[Any], Compute]]]:
    """Yield a list that gets every table that the block makes, with the function that computes its entries."""
    found: list[tuple[NDArray[Any], Compute]] = []
    token = _tables.set(found)
    try:
        yield found
    finally:
        _tables.reset(token)


def note_table(table: NDArray[Any], compute: Compute) -> None:
    """Register the function that computed a new table; kept only inside `noting_tables`."""
    found = _tables.get()
    if found is not None:
        found.append((table, compute))


def primitive(label: str, formula: str, taps: Callable[..., TapsOf] | None = None, body: str = "") -> Callable[[F], F]:
    """Return a decorator that makes a function a primitive; arguments as in `Primitive`."""

    def decorate(function: F) -> F:
        rule = Primitive(function, label, formula, taps, body)

        @wraps(function)
        def call(*args: object, **kwargs: object) -> object:
            if not _active:
                return function(*args, **kwargs)
            found = _recorder.get()
            return function(*args, **kwargs) if found is None else found.call(rule, args, kwargs)

        return cast(F, call)

    return decorate


def entries(table: NDArray[Any], index: Any) -> Any:
    """Return table[index] for a constant of the code: numpy does not report to a recorder that it is read."""
    found = recorder()
    return np.take(table, index) if found is None else found.entries(table, index)


def moves(function: F) -> F:
    """Mark a function that only moves elements of its first argument, in a way hidden from numpy's dispatch."""

    @wraps(function)
    def call(*args: object) -> object:
        found = recorder()
        return function(*args) if found is None else found.move(function, args)

    return cast(F, call)

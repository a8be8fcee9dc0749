"""What a model may ask for at most: memory, counts, nesting and repetition. The one place of all limits.

Who reads or runs a model says nothing, and gets the limits in force: those of `applied`, else those of the environment,
else the defaults of `Limits` (docs/guides/limits.md).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace

from tflq.errors import LimitError, OptionError

_PREFIX = "max_"
_UNITS = {"K": 10, "M": 20, "G": 30, "T": 40}


@dataclass(frozen=True)
class Limits:
    """Upper limits, each with a default far above what real models need.

    Field `max_memory` is `--limit memory=N` on the command line and TFLQ_MAX_MEMORY in the environment; the others
    likewise.

    Attributes:
        max_bytes: of one tensor of one sample.
        max_memory: bytes of all tensors of one sample that are alive at a time; of the constants that are computed
            before the first run; and of what reading a file adds to the file itself (sparse and packed constants).
        max_tensors: of all subgraphs of a file.
        max_operators: of all subgraphs of a file.
        max_subgraphs: of a file.
        max_depth: of tables of a flatbuffer, vectors of a flexbuffer, and subgraphs that run each other (IF, WHILE).
        max_expansion: how many times the size of a file its decoded texts, lists of numbers and, at 16 bytes each, its
            tables may take. A file whose parts are stored once stays below 1.
        max_subgraph_runs: how often one invocation may run subgraphs: twice for each turn of a WHILE.
    """

    max_bytes: int = 1 << 30
    max_memory: int = 2 << 30
    max_tensors: int = 200_000
    max_operators: int = 200_000
    max_subgraphs: int = 10_000
    max_depth: int = 64
    max_expansion: int = 4
    max_subgraph_runs: int = 100_000

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            OptionError: one is no positive number.
        """
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int) or value < 1:
                raise OptionError(f"{field.name} is {value!r}; a positive number is allowed")

    def require(self, name: str, found: int, what: str) -> None:
        """Check a figure against the limit of that name.

        Args:
            name: a field.
            found: the figure.
            what: where and what it is, as the beginning of a message.

        Raises:
            LimitError: it is higher; the message names the limit and how to raise it.
        """
        limit: int = getattr(self, name)
        if found > limit:
            raise LimitError(f"{what}: found {found}, {limit} are allowed; {raising(name)}")


_NAMES = tuple(field.name for field in fields(Limits))
_in_force: ContextVar[Limits | None] = ContextVar("limits", default=None)
_held: ContextVar[int] = ContextVar("held", default=0)


class Tally:
    """Adds up what the parts of one file take in memory beside the file itself: unpacked, dense and copied values."""

    def __init__(self) -> None:
        self._limits = current()
        self._bytes = 0

    def add(self, size: int, where: str) -> None:
        """Count the bytes of one part before it is made.

        Raises:
            LimitError: it alone is more than `max_bytes`, or all of them are more than `max_memory`.
        """
        self._bytes += size
        self._limits.require("max_bytes", size, f"{where}: bytes of its value")
        self._limits.require("max_memory", self._bytes, f"{where}: bytes of all values copied out of the file up to it")


def current() -> Limits:
    """Return the limits in force.

    Raises:
        OptionError: the environment states one that is no positive number.
    """
    return _in_force.get() or from_environment()


@contextmanager
def applied(limits: Limits | None) -> Iterator[Limits]:
    """Put limits in force for a block; None leaves them as they are."""
    chosen = current() if limits is None else limits
    token = _in_force.set(chosen)
    try:
        yield chosen
    finally:
        _in_force.reset(token)


@contextmanager
def holding(size_bytes: int) -> Iterator[None]:
    """Count bytes of one sample that are alive during a block, on top of those that are already counted."""
    token = _held.set(_held.get() + size_bytes)
    try:
        yield
    finally:
        _held.reset(token)


def require_room(size_bytes: int, what: str) -> None:
    """Check what is about to be made beside all that is alive.

    Args:
        size_bytes: of one sample of it.
        what: where and what it is, as the beginning of a message.

    Raises:
        LimitError: it alone is more than `max_bytes`, or with what is alive more than `max_memory`.
    """
    allowed = current()
    allowed.require("max_bytes", size_bytes, f"bytes of one sample of {what}")
    allowed.require("max_memory", _held.get() + size_bytes, f"bytes of all tensors of one sample alive beside {what}")


def from_environment() -> Limits:
    """Return the defaults with what the environment's TFLQ_MAX_... say instead.

    Raises:
        OptionError: one is no positive number.
    """
    stated = {name: os.environ.get(_variable(name), "") for name in _NAMES}
    return Limits(**{name: amount(text, _variable(name)) for name, text in stated.items() if text})


@contextmanager
def exported(limits: Limits) -> Iterator[None]:
    """State limits in the environment for a block, for processes that are started in it as well."""
    with environment({_variable(name): str(getattr(limits, name)) for name in _NAMES}):
        yield


@contextmanager
def environment(stated: Mapping[str, str]) -> Iterator[None]:
    """Set variables of the environment for a block."""
    before = {variable: os.environ.get(variable) for variable in stated}
    os.environ.update(stated)
    try:
        yield
    finally:
        for variable, text in before.items():
            if text is None:
                del os.environ[variable]
            else:
                os.environ[variable] = text


def from_words(words: Sequence[str]) -> Limits:
    """Return the limits in force with those that `memory=8G` and the like say instead.

    Raises:
        OptionError: no such limit, or no positive number.
    """
    changes = {}
    for word in words:
        name, _, value = word.partition("=")
        field = _PREFIX + name.strip().replace("-", "_").lower()
        if field not in _NAMES:
            known = ", ".join(_short(field) for field in _NAMES)
            raise OptionError(f"no limit is called '{name}'; there are {known}: NAME=NUMBER, as in memory=8G")
        changes[field] = amount(value, f"limit {name}")
    return replace(current(), **changes)


def amount(text: str, what: str) -> int:
    """Return a number written in digits, with K, M, G or T behind it for powers of 1024.

    Raises:
        OptionError: it is no positive number; `what` names it.
    """
    written = text.strip().upper()
    digits = written[:-1] if written[-1:] in _UNITS else written
    if not digits.isascii() or not digits.isdecimal() or int(digits) < 1:
        raise OptionError(f"{what} is '{text}'; a positive number is allowed, as 4096, 64K, 512M or 8G")
    return int(digits) << _UNITS.get(written[-1:], 0)


def raising(name: str) -> str:
    """Say how a limit is raised, for messages."""
    return f"raise the limit with --limit {_short(name)}=N, {_variable(name)}=N or Limits({name}=N)"


def _short(name: str) -> str:
    return name.removeprefix(_PREFIX).replace("_", "-")


def _variable(name: str) -> str:
    return f"TFLQ_{name.upper()}"

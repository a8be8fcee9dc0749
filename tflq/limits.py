"""Limits on the resources of a model: memory, counts, nesting and repetition. All limits are defined here.

Code that reads or runs a model uses the limits in force: the limits of `apply_limits`, or else of the environment, or
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
    """Upper limits; the defaults are far above the needs of real models.

    Field `max_memory` is `--limit memory=N` on the command line and TFLQ_MAX_MEMORY in the environment; all fields have
    such names.

    Attributes:
        max_bytes: Bytes of one tensor of one sample.
        max_memory: Bytes of all live tensors of one sample; of the constants that are computed before the first run;
            and of the additional memory for reading a file (sparse and packed constants).
        max_tensors: Number of tensors in all subgraphs of a file.
        max_operators: Number of operators in all subgraphs of a file.
        max_subgraphs: Number of subgraphs in a file.
        max_depth: Depth of nested flatbuffer tables, flexbuffer vectors, and subgraphs that call each other (IF,
            WHILE).
        max_expansion: Size of decoded texts, lists of numbers and tables (16 bytes each), relative to the size of the
            file. Files that store each part once have a value below 1.
        max_subgraph_runs: Number of subgraph runs in one invocation: two for each iteration of a WHILE.
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
            OptionError: A limit is not a positive number.
        """
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int) or value < 1:
                raise OptionError(f"{field.name} is {value!r}; a positive number is allowed")

    def require(self, name: str, value: int, what: str) -> None:
        """Check a figure against the limit with that name.

        Args:
            name: Name of the field.
            value: Figure to check.
            what: Place and name of the figure, as the beginning of a message.

        Raises:
            LimitError: The figure is higher; the message names the limit and how to raise it.
        """
        limit: int = getattr(self, name)
        if value > limit:
            raise LimitError(f"{what}: found {value}, {limit} are allowed; {describe_fix(name)}")


_NAMES = tuple(field.name for field in fields(Limits))
_in_force: ContextVar[Limits | None] = ContextVar("limits", default=None)
_held: ContextVar[int] = ContextVar("held", default=0)


class Tally:
    """Sum of the memory that the parts of one file need in addition to the file: unpacked, dense and copied values."""

    def __init__(self) -> None:
        self._limits = current()
        self._bytes = 0

    def add(self, size: int, where: str) -> None:
        """Count the bytes of one part before it is created.

        Raises:
            LimitError: The part exceeds `max_bytes`, or the sum exceeds `max_memory`.
        """
        self._bytes += size
        self._limits.require("max_bytes", size, f"{where}: bytes of its value")
        self._limits.require("max_memory", self._bytes, f"{where}: bytes of all values copied out of the file up to it")


def current() -> Limits:
    """Return the limits in force.

    Raises:
        OptionError: A limit in the environment is not a positive number.
    """
    return _in_force.get() or from_environment()


@contextmanager
def apply_limits(limits: Limits | None) -> Iterator[Limits]:
    """Apply limits in a block; None keeps the limits in force."""
    chosen = current() if limits is None else limits
    token = _in_force.set(chosen)
    try:
        yield chosen
    finally:
        _in_force.reset(token)


@contextmanager
def count_live_bytes(size_bytes: int) -> Iterator[None]:
    """Count bytes of one sample as live in a block, in addition to the bytes that are already counted."""
    token = _held.set(_held.get() + size_bytes)
    try:
        yield
    finally:
        _held.reset(token)


def require_room(size_bytes: int, what: str) -> None:
    """Check the size of a new tensor together with all live tensors.

    Args:
        size_bytes: Size of one sample of it in bytes.
        what: Place and name, as the beginning of a message.

    Raises:
        LimitError: It exceeds `max_bytes`, or together with the live bytes `max_memory`.
    """
    allowed = current()
    allowed.require("max_bytes", size_bytes, f"bytes of one sample of {what}")
    allowed.require("max_memory", _held.get() + size_bytes, f"bytes of all tensors of one sample alive beside {what}")


def from_environment() -> Limits:
    """Return the defaults, replaced by the limits TFLQ_MAX_... in the environment.

    Raises:
        OptionError: A limit is not a positive number.
    """
    stated = {name: os.environ.get(_variable(name), "") for name in _NAMES}
    return Limits(**{name: amount(text, _variable(name)) for name, text in stated.items() if text})


@contextmanager
def export_limits(limits: Limits) -> Iterator[None]:
    """Set limits in the environment in a block, so that child processes use them, too."""
    with environment({_variable(name): str(getattr(limits, name)) for name in _NAMES}):
        yield


@contextmanager
def environment(stated: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables in a block."""
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
    """Return the limits in force, replaced by the limits in words such as `memory=8G`.

    Raises:
        OptionError: The name is unknown, or the value is not a positive number.
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
    """Parse a number in digits, with an optional K, M, G or T for powers of 1024.

    Raises:
        OptionError: It is not a positive number; the message begins with `what`.
    """
    digits_text = text.strip().upper()
    digits = digits_text[:-1] if digits_text[-1:] in _UNITS else digits_text
    if not digits.isascii() or not digits.isdecimal() or int(digits) < 1:
        raise OptionError(f"{what} is '{text}'; a positive number is allowed, as 4096, 64K, 512M or 8G")
    return int(digits) << _UNITS.get(digits_text[-1:], 0)


def describe_fix(name: str) -> str:
    """Return how a limit is raised, for messages."""
    return f"raise the limit with --limit {_short(name)}=N, {_variable(name)}=N or Limits({name}=N)"


def _short(name: str) -> str:
    return name.removeprefix(_PREFIX).replace("_", "-")


def _variable(name: str) -> str:
    return f"TFLQ_{name.upper()}"

"""Errors of tflq.

A message is one line: place (file, operator number and name, tensor), problem, allowed values, fix. The command line
prints it on stderr and exits with status 2; a failed check exits with status 1 and is not an error.
"""

from __future__ import annotations

import re
from contextvars import ContextVar

from tflq.quoting import escape_unprintable

command_line: ContextVar[str | None] = ContextVar("command_line", default=None)
"""Command line that calls use cases; None in Python."""

_OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*)")
_PARAMETERS = {
    "input": "samples",
    "samples": "count",
    "set": "settings",
    "layer": "layers",
    "calibrate": "calibration",
    "float": "in_float",
    "limit": "limits",
    "port": "board",
    "quantized-values": "values='quantized'",
    "real-values": "values='real'",
}
"""Option of the command line -> parameter in Python, if their names differ."""


def name_parameters(text: str) -> str:
    """Return a message with options of the command line; in Python, with the corresponding parameters."""
    if command_line.get() is not None:
        return text
    return _OPTION.sub(lambda option: _PARAMETERS.get(option[1], option[1].replace("-", "_")), text)


class TflqError(Exception):
    """Any error that the user can correct: invalid input, invalid options, missing files.

    A message names options of the command line; in Python it names the parameters.
    """

    def __str__(self) -> str:
        """Return the message with unprintable characters escaped."""
        return escape_unprintable(name_parameters(super().__str__()))


class FormatError(TflqError):
    """A file does not follow its format: damaged, truncated, or of another kind."""


class GraphError(TflqError):
    """A graph is inconsistent: an index out of range, a cycle, a wrong shape."""


class RuntimeOperandError(GraphError):
    """An operand that decides integers or shapes is computed at run time.

    The engine catches this error and lowers the node when the value is available.

    Attributes:
        position: Number of the node's input.
    """

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


class UnsupportedError(TflqError):
    """An operator, type or attribute has no kernel, or is not supported by a target."""


class LimitError(UnsupportedError):
    """A model exceeds a limit in force (tflq/limits.py); no part of it was created."""


class InputError(TflqError):
    """An array given by the user has the wrong name, shape, dtype or range."""


class SampleError(InputError):
    """One sample of an array does not fit.

    Attributes:
        sample: Number of the sample.
    """

    def __init__(self, message: str, sample: int) -> None:
        super().__init__(message)
        self.sample = sample


class OptionError(TflqError):
    """An option, target or key does not exist, or a value is outside its limits."""


class UsageError(OptionError):
    """Options that contradict each other or lack another one; messages use the names of the command line."""


class TflqWarning(UserWarning):
    """A remark that does not stop the work; the command line prints it on stderr."""

    def __str__(self) -> str:
        """Return the remark with unprintable characters escaped."""
        return escape_unprintable(super().__str__())


class OutputError(TflqError):
    """An artifact cannot be written."""


class MissingExtraError(TflqError):
    """An optional package is needed; the message names the extra to install."""


class OracleError(TflqError):
    """The other implementation (TFLite) refused the model, aborted, or did not respond in time."""


class DeviceError(TflqError):
    """A device under test cannot be reached, did not respond in time, or violated its protocol."""

"""The one hierarchy of errors.

A message is one line: where (file, operator number and name, tensor), what was found, what is allowed, what to do.
The command line prints it on stderr and exits with status 2; a check that fails exits with status 1 and is no error.
"""

from __future__ import annotations

import re
from contextvars import ContextVar

from tflq.quoting import shown

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
"""Option of the command line -> parameter in Python, where their names differ."""


def name_parameters(text: str) -> str:
    """Return a message with the options as the caller knows them: in Python as parameters."""
    if command_line.get() is not None:
        return text
    return _OPTION.sub(lambda option: _PARAMETERS.get(option[1], option[1].replace("-", "_")), text)


class TflqError(Exception):
    """Any error that the user can act on: bad input, bad options, something that is not there.

    A message names options as the command line does; in Python it names the parameters.
    """

    def __str__(self) -> str:
        """Return the message; what a file says in it is shown escaped."""
        return shown(name_parameters(super().__str__()))


class FormatError(TflqError):
    """A file does not follow its format: damaged, truncated, or of another kind."""


class GraphError(TflqError):
    """A graph contradicts itself: an index out of range, a cycle, a shape that does not fit."""


class RuntimeOperandError(GraphError):
    """An operand whose value decides integers or shapes is computed at run time.

    The engine catches it and lowers the node when the value is there.

    Attributes:
        position: which input of the node.
    """

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


class UnsupportedError(TflqError):
    """An operator, type or attribute that has no kernel, or that a target cannot take."""


class LimitError(UnsupportedError):
    """What a model asks for is beyond a limit in force (tflq/limits.py); nothing of it was made."""


class InputError(TflqError):
    """An array given by the user has the wrong name, shape, dtype or range."""


class SampleError(InputError):
    """One sample of an array does not fit.

    Attributes:
        sample: its number.
    """

    def __init__(self, message: str, sample: int) -> None:
        super().__init__(message)
        self.sample = sample


class OptionError(TflqError):
    """An option, target or key that does not exist, or a value outside its limits."""


class UsageError(OptionError):
    """Options that contradict each other, or one that lacks what it needs; they are named as the command line does."""


class TflqWarning(UserWarning):
    """A remark on what was done all the same; the command line prints it on stderr."""

    def __str__(self) -> str:
        """Return the remark; what a file says in it is shown escaped."""
        return shown(super().__str__())


class OutputError(TflqError):
    """An artifact cannot be written."""


class MissingExtraError(TflqError):
    """An optional package is needed; the message names the extra to install."""


class OracleError(TflqError):
    """The other implementation (TFLite) refused the model, aborted, or did not answer in time."""


class DeviceError(TflqError):
    """A device under test cannot be reached, did not answer in time, or answered something else than its protocol."""

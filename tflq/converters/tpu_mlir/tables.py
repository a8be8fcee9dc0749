"""TPU-MLIR's tables: ranges of tensors, modes of layers (docs/targets/tpu_mlir.md#files)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from tflq.errors import FormatError
from tflq.units import finite

_FIELDS = "name threshold min max"
_SECTIONS = ("#int4_th", "#asym_op")
_HEADER = "# op_name    threshold    min    max"


@dataclass(frozen=True)
class CalibrationLine:
    """The calibrated range of one tensor.

    Attributes:
        name: as TPU-MLIR calls the tensor.
        threshold: largest magnitude that the quantized values reach, above 0.
        minimum: its sign decides between uint8 and int8; the asymmetric mode uses its value.
        maximum: the asymmetric mode uses it.
    """

    name: str
    threshold: float
    minimum: float
    maximum: float


@dataclass(frozen=True)
class CalibrationTable:
    """The lines of a table, in the order of the network; each name once."""

    lines: tuple[CalibrationLine, ...]

    def find(self, name: str) -> CalibrationLine | None:
        """Return the line of a tensor."""
        return next((line for line in self.lines if line.name == name), None)


def format_calibration_table(table: CalibrationTable) -> str:
    """Return the text: numbers with all digits that they need, never with an exponent."""
    rows = (
        f"{line.name} {_number(line.threshold)} {_number(line.minimum)} {_number(line.maximum)}" for line in table.lines
    )
    return "\n".join([_HEADER, *rows, ""])


def parse_calibration_table(text: str, source: str = "") -> CalibrationTable:
    """Read a table; lines that begin with # are comments.

    Args:
        text: of the file.
        source: the file's name, for messages.

    Raises:
        FormatError: with the number of the line: another number of fields, no number, a threshold that is not positive,
            min above max, a name twice, or a section that is not read (#int4_th, #asym_op).
    """
    lines: dict[str, CalibrationLine] = {}
    for number, row in enumerate(text.splitlines(), 1):
        where = f"{source}: line {number}" if source else f"line {number}"
        if row.strip().startswith(_SECTIONS):
            raise FormatError(f"{where}: section {row.strip().split()[0]} is not read; remove it and what follows")
        if not row.strip() or row.lstrip().startswith("#"):
            continue
        line = _parse_line(row, where)
        if line.name in lines:
            raise FormatError(f"{where}: tensor '{line.name}' has a line already")
        lines[line.name] = line
    return CalibrationTable(tuple(lines.values()))


def _parse_line(row: str, where: str) -> CalibrationLine:
    fields = row.split()
    if len(fields) != 4:
        raise FormatError(f"{where}: found {len(fields)} fields, a line has 4: {_FIELDS}")
    numbers = []
    for text, what in zip(fields[1:], _FIELDS.split()[1:], strict=True):
        number = finite(text)
        if number is None:
            raise FormatError(f"{where}: {what} of '{fields[0]}' is '{text}', a finite number is needed")
        numbers.append(number)
    threshold, minimum, maximum = numbers
    if threshold <= 0:
        raise FormatError(f"{where}: threshold of '{fields[0]}' is {fields[1]}; it must be above 0")
    if minimum > maximum:
        raise FormatError(f"{where}: min of '{fields[0]}' is {fields[2]}, above max {fields[3]}")
    return CalibrationLine(fields[0], threshold, minimum, maximum)


def _number(value: float) -> str:
    return np.format_float_positional(value, trim="0")


def few(names: Iterable[str]) -> str:
    """Return the first names of many, for a message."""
    listed = list(names)
    return ", ".join(listed[:5]) + (f" and {len(listed) - 5} more" if len(listed) > 5 else "")


MODES = ("INT8", "F16", "F32")


def format_quantization_table(modes: Mapping[str, str]) -> str:
    """Return the text of a table: layer -> mode."""
    return "\n".join(["# op_name   quantize_mode", *(f"{name} {mode}" for name, mode in modes.items()), ""])

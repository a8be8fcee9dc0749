"""What tests/support/exceptions.py allows, cell by cell."""

from __future__ import annotations

from dataclasses import dataclass

from tests.conformance.cells import Cell
from tests.support.exceptions import KNOWN_DIFFERENCES


@dataclass(frozen=True)
class Tolerance:
    """How far a result may be from TFLite's.

    Attributes:
        ulps: 0 for exact.
        unit: the last place of the "result", of the "input", or of the "largest" element of the result.
    """

    ulps: float
    unit: str = "result"


@dataclass(frozen=True)
class ListedRefusal:
    """A refusal of what TFLite runs.

    Attributes:
        operators: names.
        words: of the message.
        reason: why.
    """

    operators: tuple[str, ...]
    words: str
    reason: str


_SHIFT = "TFLite shifts by a negative count, undefined in C++"
LISTED_REFUSALS = (ListedRefusal(("sub",), "output multiplier", _SHIFT),)

UNJUDGED = {
    ("not_equal", "int16"): "TFLite's kernel does not write its output; tflq gives x != y",
    ("lstm", "int16q"): "int16 is the state of the basic cell, whose cell is lstm uint8q; no LSTM has an int16 input",
}
"""Cells that are not run, and why."""


def tolerance(cell: Cell) -> Tolerance:
    """Return the bound of a cell; integers are exact."""
    if cell.dtype.is_integer or cell.dtype.storage.kind not in "fc":
        return Tolerance(0)
    known = [d for d in KNOWN_DIFFERENCES if d.units and cell.operator in d.operator.split(", ")]
    return max((Tolerance(d.units or 0, d.of) for d in known), key=lambda t: t.ulps, default=Tolerance(0))


def refusal_is_listed(cell: Cell, message: str) -> bool:
    """Whether a refusal of what TFLite runs stands in the list."""
    return any(cell.operator in listed.operators and listed.words in message for listed in LISTED_REFUSALS)


def unjudged(cell: Cell) -> str | None:
    """Return why nobody runs a cell, where the list says so."""
    return UNJUDGED.get((cell.operator, str(cell.kind)))

"""What tests/support/exceptions.py allows, cell by cell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.conformance.cells import Cell
from tests.support.exceptions import KNOWN_DIFFERENCES, KnownDifference


@dataclass(frozen=True)
class Tolerance:
    """How far a result may be from TFLite's.

    Attributes:
        ulps: 0 for exact.
        unit: the last place of the "result", of the "input", or of the "largest" element of the result.
    """

    ulps: float
    unit: str = "result"


def tolerance(cell: Cell) -> Tolerance:
    """Return the bound of a cell; integers are exact."""
    if cell.dtype.is_integer or cell.dtype.storage.kind not in "fc":
        return Tolerance(0)
    found = (Tolerance(d.units, d.of) for d in _of(cell) if d.units)
    return max(found, key=lambda t: t.ulps, default=Tolerance(0))


def refusal_is_listed(cell: Cell, message: str) -> bool:
    """Whether a refusal of what TFLite runs stands in the list."""
    return any(d.refusal and d.refusal in message for d in _of(cell))


def not_compared(operator: str, kind: str) -> str | None:
    """Return why nobody runs a cell, where the list says so."""
    return next((d.reason for d in KNOWN_DIFFERENCES if operator in d.operators and kind in d.not_compared), None)


def _of(cell: Cell) -> Iterator[KnownDifference]:
    return (d for d in KNOWN_DIFFERENCES if cell.operator in d.operators)

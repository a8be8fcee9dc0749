"""The table of cells: for a terminal, for programs, and for docs/differences/tflite_operators.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.conformance.cases import CellResult
from tests.conformance.judge import Outcome

COLUMNS = ("int8q", "uint8q", "int16q", "float32")
"""Kinds that have a column of their own."""
HEADER = ("operator", *COLUMNS, "other types", "stand-in")
"""The other kinds share a column, and so do the cases that another model of TFLite judges than the case itself."""


def words_of(result: CellResult) -> str:
    """Describe a cell in a few words: the number of cases, and what of them is not exact."""
    if result.listed:
        return "listed"
    parts = []
    if result.failures:
        failed = {o.value: result.outcomes.get(o.value, 0) for o in Outcome if o.is_failure}
        parts = [f"{n} {name}" for name, n in failed.items() if n] or ["none ran"]
    listed = result.outcomes.get(Outcome.LISTED.value, 0)
    exact = result.outcomes.get(Outcome.EXACT.value, 0)
    if exact or not (parts or result.outcomes.get(Outcome.STAND_IN.value)):
        parts.insert(0, str(exact))
    return ", ".join([*parts, *([f"{listed} listed"] if listed else [])])


def rows(results: Iterable[CellResult]) -> list[tuple[str, ...]]:
    """Return one row an operator, a field for each of HEADER."""
    found: dict[str, dict[str, CellResult]] = {}
    for result in results:
        found.setdefault(result.operator, {})[result.kind] = result
    table = []
    for operator, cells in found.items():
        own = [words_of(cells[kind]) if kind in cells else "" for kind in COLUMNS]
        rest = "; ".join(f"{kind} {words_of(r)}" for kind, r in cells.items() if kind not in COLUMNS)
        judged = {kind: r.outcomes.get(Outcome.STAND_IN.value, 0) for kind, r in cells.items()}
        table.append((operator, *own, rest, "; ".join(f"{kind} {n}" for kind, n in judged.items() if n)))
    return table


def text(results: Sequence[CellResult]) -> str:
    """The table in columns of equal width, then one line for each failure."""
    table = [HEADER, *rows(results)]
    widths = [max(len(row[i]) for row in table) for i in range(len(COLUMNS) + 1)]
    lines = [
        "  ".join([*(c.ljust(w) for c, w in zip(row, widths, strict=False)), *row[len(widths) :]]).rstrip()
        for row in table
    ]
    lines += ["", *(f"{r.operator} {r.kind}: {failure[:300]}" for r in results for failure in r.failures)]
    return "\n".join([*lines, summary(results)])


def summary(results: Sequence[CellResult]) -> str:
    """One line of totals."""
    cases = sum(sum(r.outcomes.values()) for r in results)
    failed = sum(bool(r.failures) for r in results)
    totals = {o: sum(r.outcomes.get(o.value, 0) for r in results) for o in Outcome}
    outcomes = ", ".join(f"{n} {o.value}" for o, n in totals.items() if n)
    return f"{len(results)} cells, {cases} cases: {outcomes}; {failed} cells fail"


def as_json(results: Iterable[CellResult]) -> list[dict[str, object]]:
    """The table as plain data."""
    return [
        {"operator": r.operator, "type": r.kind, "outcomes": r.outcomes, "first": r.first, "listed": r.listed,
         "failures": r.failures}
        for r in results
    ]  # fmt: skip

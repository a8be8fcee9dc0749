"""The tables of `explain`: the steps of an element, or two computations side by side."""

from __future__ import annotations

from tflq.diagnosis.explain import Explanation, Pair, SideBySide, Step, Value
from tflq.diagnosis.explain.side_by_side import at
from tflq.report.table import Column, Table, number

_NUMBERS_A_LINE = 16


def steps_tables(found: Explanation) -> list[Table]:
    """Return the steps of each part: label, formula and value."""
    tables = []
    for part in found.parts:
        width = max(len(step.label) for step in part.steps)
        lines = [line for step in part.steps for line in _lines(step, width)]
        tables.append(Table(title=_heading(part), lines=lines))
    return tables


def side_by_side_table(found: SideBySide, first: str, second: str) -> Table:
    """Return both computations step by step; the first step that differs is marked."""
    heads = [f"A: {first}: {_heading(found.first)}", f"B: {second}: {_heading(found.second)}"]
    parting = found.parting
    columns = (
        Column("", "differs", get=lambda pair: "->" if pair is parting else "*" if pair.differs else ""),
        Column("", "step", get=lambda pair: f"{pair.label} {list(pair.place)}" if pair.place else pair.label),
        number("", "A", lambda pair: _cell(pair, pair.first)),
        number("", "B", lambda pair: _cell(pair, pair.second)),
        Column("", "formula of A", get="first.formula", rank=1),
    )
    return Table("", columns, found.pairs, "Both computations", marked=lambda pair: pair is parting, lines=heads)


def _heading(part: Explanation) -> str:
    """Name the element, its node and the source of the formula."""
    return (
        f"'{part.tensor}' {list(part.index)}, sample {part.sample}: {part.node} ({part.operator}, arithmetic "
        f"{part.arithmetic}); formula: {part.source}"
    )


def _lines(step: Step, width: int) -> list[str]:
    """Write a step: a number after its formula, rows of numbers below the formula."""
    head = f"  {step.label:<{width}}  "
    if not isinstance(step.value, tuple):
        return [f"{head}{step.formula + ' = ' if step.formula else ''}{step.value}"]
    return [f"{head}{step.formula}".rstrip(), *(f"  {'':<{width}}    {row}" for row in _rows(step.value))]


def _rows(value: Value) -> list[str]:
    if not isinstance(value, tuple):
        return [str(value)]
    if any(isinstance(item, tuple) for item in value):
        inner = [_rows(item) for item in value]
        if all(len(rows) == 1 for rows in inner) and all(isinstance(item, tuple) and len(item) == 1 for item in value):
            return [" ".join(rows[0] for rows in inner)]
        return [line for rows in inner for line in rows]
    numbers = [str(item) for item in value]
    width = max(map(len, numbers), default=0)
    return [
        " ".join(f"{n:>{width}}" for n in numbers[i : i + _NUMBERS_A_LINE])
        for i in range(0, len(numbers), _NUMBERS_A_LINE)
    ]


def _cell(pair: Pair, step: Step | None) -> str:
    if step is None:
        return ""
    value = at(step.value, pair.place) if pair.place else step.value
    is_equal = isinstance(value, tuple) and not pair.differs and pair.first is not None and pair.second is not None
    text = "equal" if is_equal else str(value)
    return text if len(text) <= 24 else f"{text[:21]}..."

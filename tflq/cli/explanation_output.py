"""What `tflq explain` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tflq.cli import output

if TYPE_CHECKING:
    from tflq.analysis.explain import Explanation, Pair, SideBySide, Step, Value

_NUMBERS_A_LINE = 16


def print_explanation(found: Explanation) -> None:
    """Print each part: a heading, then the steps with formula and value."""
    for part in found.parts:
        output.line(heading(part))
        width = max(len(step.label) for step in part.steps)
        for step in part.steps:
            for line in _lines(step, width):
                output.line(line)
        output.line()
    real = "" if found.real is None else f", as a real number {found.real:.6g}"
    output.line(f"'{found.tensor}' {list(found.index)} of sample {found.sample} is {found.stored}{real}")


def print_side_by_side(found: SideBySide, first: str, second: str) -> None:
    """Print both computations next to each other; the step where they part is marked."""
    output.line(f"A: {first}: {heading(found.first)}")
    output.line(f"B: {second}: {heading(found.second)}")
    output.line()
    parting = found.parting
    rows = [_row(pair, pair is parting) for pair in found.pairs]
    output.table(("", "step", "A", "B", "formula of A"), rows, right=("A", "B"))
    output.line()
    output.line(found.words())


def heading(part: Explanation) -> str:
    """Name the element, its node and where the formula stands."""
    return (
        f"'{part.tensor}' {list(part.index)}, sample {part.sample}: {part.node} ({part.operator}, arithmetic "
        f"{part.arithmetic}); formula: {part.source}"
    )


def explanation_report(found: Explanation) -> dict[str, output.Json]:
    """Return the report of --json: the last part's element, and all parts with their steps."""
    return {
        "tensor": found.tensor,
        "index": found.index,
        "sample": found.sample,
        "stored": found.stored,
        "real": found.real,
        "parts": [
            {
                "tensor": part.tensor,
                "index": part.index,
                "node": part.node,
                "operator": part.operator,
                "arithmetic": part.arithmetic,
                "source": part.source,
                "steps": [_step(step) for step in part.steps],
            }
            for part in found.parts
        ],
    }


def against_report(found: SideBySide) -> dict[str, output.Json]:
    """Return the report of --json for two computations."""
    parting = found.parting
    return {
        "equal": found.first.stored == found.second.stored,
        "verdict": found.words(),
        "parting": None if parting is None else {"step": parting.label, "place": parting.place},
        "first": explanation_report(found.first),
        "second": explanation_report(found.second),
    }


def _step(step: Step) -> dict[str, output.Json]:
    return {"step": step.label, "formula": step.formula, "value": step.value}


def _lines(step: Step, width: int) -> list[str]:
    """Write a step: a number behind its formula, rows of numbers below it."""
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


def _row(pair: Pair, is_parting: bool) -> tuple[str, ...]:
    mark = "->" if is_parting else "*" if pair.differs else ""
    formula = pair.first.formula if pair.first is not None else ""
    return mark, _label(pair), _cell(pair, pair.first), _cell(pair, pair.second), formula


def _label(pair: Pair) -> str:
    return f"{pair.label} {list(pair.place)}" if pair.place else pair.label


def _cell(pair: Pair, step: Step | None) -> str:
    from tflq.analysis.explain.side_by_side import at

    if step is None:
        return ""
    value = at(step.value, pair.place) if pair.place else step.value
    return "equal" if isinstance(value, tuple) and not pair.differs and pair.first and pair.second else _short(value)


def _short(value: Value) -> str:
    text = str(value)
    return text if len(text) <= 24 else f"{text[:21]}..."

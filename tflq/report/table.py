"""Tables and verdicts: the content of a result, whatever form it is rendered in (docs/guides/python.md, "Results").

A result has one `Verdict` and a list of `Table`s. Terminal, page, JSON, CSV and pandas are renderings of these, so no
number or sentence is written twice.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

from tflq import units
from tflq.quoting import Json, json_text, plain_json
from tflq.report.svg import Chart

Kind = Literal["identifier", "number", "text"]


@dataclass(frozen=True)
class Column:
    """A column of a table, or a single fact of a result.

    Attributes:
        key: Key in JSON, CSV and pandas; empty for a column that only people read.
        head: Heading for people; empty for a column that only programs read.
        kind: identifier (never shortened), number (aligned to the right) or text (wraps between words).
        unit: Unit of the numbers, written in the heading.
        get: Attribute path or function that returns the value for a row (default: the key).
        text: Function that writes the value for people (default: `words` of the value).
        rank: Narrow terminals omit the column with the largest rank first; 0 stays.
        bar: Whether pages draw a bar below the value; the largest value of the column has the full length.
    """

    key: str
    head: str = ""
    kind: Kind = "text"
    unit: str = ""
    get: str | Callable[..., Json] = ""
    text: Callable[..., str] | None = None
    rank: int = 0
    bar: bool = False

    @property
    def heading(self) -> str:
        """Heading with the unit."""
        return f"{self.head}, {self.unit}" if self.unit else self.head

    def value(self, row: object) -> Json:
        """Return the value for a row: the result of `get`, or an attribute or item; None after an attribute None."""
        if callable(self.get):
            return self.get(row)
        value: object = row
        for name in (self.get or self.key).split("."):
            value = value.get(name) if isinstance(value, Mapping) else None if value is None else getattr(value, name)
        return cast(Json, value)

    def cell(self, row: object) -> str:
        """Return the value for a row as people read it."""
        return words(self.value(row)) if self.text is None else self.text(row)


def identifier(key: str, head: str, get: str | Callable[..., Json] = "", rank: int = 0) -> Column:
    """Return a column of names that users type."""
    return Column(key, head, "identifier", get=get, rank=rank)


def number(
    key: str,
    head: str,
    get: str | Callable[..., Json] = "",
    form: str | Callable[..., str] = "",
    unit: str = "",
    rank: int = 0,
    *,
    bar: bool = False,
) -> Column:
    """Return a column of numbers.

    Args:
        key: Key in JSON.
        head: Heading.
        get: Attribute path or function that returns the value.
        form: Format specification of the value, or a function that writes it for a row.
        unit: Unit of the values.
        rank: Rank as in `Column.rank`.
        bar: Bar as in `Column.bar`.
    """
    if callable(form):
        return Column(key, head, "number", unit, get, form, rank, bar)
    column = Column(key, head, "number", unit, get, None, rank, bar)
    return replace(column, text=lambda row: _format_value(column.value(row), form)) if form else column


def _format_value(value: Json, form: str) -> str:
    return "" if value is None or value != value else f"{value:{form}}"


def keys(*names: str) -> tuple[Column, ...]:
    """Return columns that only programs read, with the attributes of these names."""
    return tuple(Column(name) for name in names)


def words(value: Json) -> str:
    """Write a value for people: an empty cell for None and False, up to six digits, items between commas."""
    if value is None or value is False or value != value:
        return ""
    if value is True:
        return "yes"
    if isinstance(value, float):
        return units.number(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(words, value))
    return str(value)


@dataclass(frozen=True)
class Table:
    """A section of a result: drawings, rows, sentences below them; each part may be absent.

    Attributes:
        name: Key of the rows in JSON, and name for requests; JSON omits a table without any keyed column.
        columns: Columns.
        rows: Objects that the columns read.
        title: Heading.
        notes: Sentences below the rows.
        marked: Predicate of the rows to mark.
        brief: Predicate of the rows that a terminal lists by default; None for all.
        charts: Function that draws; only pages call it.
        terminal: shown, on request (an option of the command names the table), or never.
        lines: Preformatted lines above the rows.
        in_json: False if a fact of the result has the rows; CSV and pandas know the table all the same.
    """

    name: str = ""
    columns: Sequence[Column] = ()
    rows: Sequence[object] = ()
    title: str = ""
    notes: Sequence[str] = ()
    marked: Callable[..., bool] | None = None
    brief: Callable[..., bool] | None = None
    charts: Callable[[], Sequence[Chart]] = tuple
    terminal: Literal["shown", "on request", "never"] = "shown"
    lines: Sequence[str] = ()
    in_json: bool = True

    @property
    def is_keyed(self) -> bool:
        """Whether programs can read the rows."""
        return bool(self.name) and any(c.key for c in self.columns)

    @property
    def visible_columns(self) -> list[Column]:
        """Columns for people; a column without any text is omitted."""
        return [c for c in self.columns if c.head and any(c.cell(row).strip() for row in self.rows)]

    def bars(self) -> list[list[float | None]]:
        """Return the length of each bar in percent, by row and visible_columns column; None without a bar."""
        columns = [[_magnitude(c.value(row)) for row in self.rows] if c.bar else None for c in self.visible_columns]
        lengths = [[None] * len(self.rows) if values is None else _lengths(values) for values in columns]
        return [list(row) for row in zip(*lengths, strict=True)]

    def is_marked(self, row: object) -> bool:
        """Whether a row is marked."""
        return self.marked is not None and self.marked(row)

    def records(self) -> list[dict[str, Json]]:
        """Return the rows by key, in JSON's own types."""
        keyed = [c for c in self.columns if c.key]
        return [{c.key: plain_json(c.value(row)) for c in keyed} for row in self.rows]

    def flat_records(self) -> list[dict[str, object]]:
        """Return the rows with scalar values: dotted keys for objects, space-separated items for lists."""
        return [dict(_flat("", record)) for record in self.records()]

    def to_csv(self) -> str:
        """Return the flat rows as CSV: a line of keys, then one line per row."""
        rows, text = self.flat_records(), io.StringIO()
        keys = dict.fromkeys(key for row in rows for key in row) or [c.key for c in self.columns if c.key]
        writer = csv.DictWriter(text, list(keys), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue()


def _flat(key: str, value: Json) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _flat(f"{key}.{name}" if key else name, item)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        yield key, " ".join(json_text(item, indent=None) if isinstance(item, Mapping) else str(item) for item in value)
    else:
        yield key, int(value) if isinstance(value, bool) else value


def _magnitude(value: Json) -> float:
    """Return a number, or the number of a figure with its grade; 0 for other values."""
    value = value.get("value") if isinstance(value, Mapping) else value
    return float(value) if isinstance(value, (int, float)) and not math.isnan(value) else 0.0


def _lengths(values: Sequence[float]) -> list[float | None]:
    """Return shares of the largest finite value in percent; infinite values are 100, negative ones 0."""
    largest = max((v for v in values if math.isfinite(v)), default=0.0)
    return [100.0 if v == math.inf else round(100 * max(v, 0.0) / largest, 1) if largest > 0 else 0.0 for v in values]


Word = Literal["OK", "rounding only", "FAIL", ""]


def word_of(is_right: object) -> Word:
    """Return OK or FAIL."""
    return "OK" if is_right else "FAIL"


@dataclass(frozen=True)
class Verdict:
    """The outcome of a result.

    Attributes:
        word: OK, rounding only or FAIL; empty if the command has no criterion.
        number: The figure that decides.
        unit: Unit of the figure, "tensors of 31 differ" or "% accuracy".
        reference: The model, runtime or bound that the figure is measured against.
        samples: Number of samples that it was measured on.
        advice: Next step, or the place of the largest difference.
        link: Words between unit and reference.
    """

    word: Word
    number: float | None = None
    unit: str = ""
    reference: str = ""
    samples: int | None = None
    advice: str = ""
    link: str = ", reference"

    @property
    def text(self) -> str:
        """All parts as one sentence, the word first."""
        figure = "" if self.number is None else units.number(self.number)
        if self.number is not None and self.unit.startswith(("%", "dB")):
            figure = f"{self.number:.1f}"
        base = [f"{figure} {self.unit}".strip() + (f"{self.link} {self.reference}" if self.reference else "")]
        base.append("" if self.samples is None else f"{self.samples} sample{'s' * (self.samples != 1)}")
        sentence = "; ".join(filter(None, (", ".join(filter(None, base)), self.advice)))
        return ": ".join(filter(None, (self.word, sentence)))

    def to_dict(self) -> dict[str, Json]:
        """Return the parts and the sentence."""
        parts = ("word", "number", "unit", "reference", "samples", "advice", "text")
        return {name: plain_json(getattr(self, name)) for name in parts}

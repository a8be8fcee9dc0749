"""A page as lines of a terminal: the verdict, then each table, in rich's layout."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as Grid
from rich.text import Text

from tflq.quoting import escape_unprintable
from tflq.report.page import Page
from tflq.report.table import Column, Table

_UNBOUNDED = 100_000
_WHOLE = frozenset({"identifier", "number"})
"""Kinds of columns whose cells stay in one line."""


def page_lines(page: Page, width: int | None, requested: Collection[str] = ()) -> Iterator[str]:
    """Yield the lines of a page.

    Args:
        page: Content.
        width: Cells of the terminal; None without a limit.
        requested: Names of tables to show with all their rows, also tables that are shown on request only.
    """
    yield from text_lines(page.verdict.text, width)
    for note in page.notes:
        yield from text_lines(note, width)
    for table in page.tables:
        is_shown = table.terminal == "shown" or (table.terminal == "on request" and table.name in requested)
        lines = list(_section(table, width, table.name in requested)) if is_shown else []
        if lines:
            yield ""
            yield from lines


def _section(table: Table, width: int | None, has_all_rows: bool) -> Iterator[str]:
    is_limited = table.brief is not None and not has_all_rows
    rows = [row for row in table.rows if not is_limited or (table.brief is not None and table.brief(row))]
    columns = table.visible_columns if rows else []
    if table.title and (columns or table.notes or table.lines):
        yield from text_lines(f"{table.title}:", width)
    for line in table.lines:
        yield from text_lines(line, width)
    if columns:
        yield from table_lines(columns, rows, width)
    if is_limited and 0 < len(rows) < len(table.rows):
        yield f"and {len(table.rows) - len(rows)} more rows; --json has all"
    for note in table.notes:
        yield from text_lines(note, width)


def text_lines(text: str, width: int | None) -> list[str]:
    """Return a text in lines of a width, cut between words; a command to copy continues after a backslash."""
    text = escape_unprintable(text)
    if width is None or len(text) <= width:
        return [text]
    is_command = text.lstrip().startswith("tflq ")
    more = " " * (len(text) - len(text.lstrip()) + 2)
    room = width - 2 * is_command
    parts = textwrap.wrap(text, room, subsequent_indent=more, break_long_words=False, break_on_hyphens=False)
    return [f"{part} \\" for part in parts[:-1]] + parts[-1:] if is_command else parts


def table_lines(columns: Sequence[Column], rows: Sequence[object], width: int | None) -> list[str]:
    """Return a table that fits a width.

    Text wraps between words. Identifiers and numbers stay whole: columns with a rank are omitted, the largest first,
    until these fit. Identifiers that are still too wide continue in the next line; no character is omitted.
    """
    console = Console(markup=False, highlight=False, emoji=False, color_system=None, width=width or _UNBOUNDED)
    measure = partial(Measurement.get, console, console.options.update(max_width=_UNBOUNDED))
    parts = [_Part(column, [Text(escape_unprintable(column.cell(row))) for row in rows]) for column in columns]
    while (narrowest := measure(_grid(parts)).minimum) > console.width:
        last = max(parts, key=lambda part: part.column.rank)
        if not last.column.rank:
            break
        parts.remove(last)
    fixed = _WHOLE if narrowest <= console.width else _WHOLE - {"identifier"}
    wraps_heads = measure(_grid(parts, wraps_heads=False)).maximum > console.width
    with console.capture() as capture:
        console.print(_grid(parts, fixed, wraps_heads=wraps_heads))
    kept = [part.column for part in parts]
    omitted = [c.head for c in columns if c not in kept]
    note = text_lines(f"omitted: {', '.join(omitted)}; --wide shows all", width) if omitted else []
    return [line.rstrip() for line in capture.get().splitlines()] + note


class _Part(NamedTuple):
    """A column with the text of its cells."""

    column: Column
    texts: list[Text]


def _grid(parts: Sequence[_Part], fixed: Collection[str] = _WHOLE, *, wraps_heads: bool = True) -> Grid:
    """Return rich's table of some columns.

    Args:
        parts: Columns with their cells.
        fixed: Kinds of columns with a stated width. rich narrows the widest of all other columns first, even below
            its min_width.
        wraps_heads: Whether heads of fixed columns wrap between words.
    """
    grid = Grid(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column, texts in parts:
        heads = column.heading.split() if wraps_heads else [column.heading]
        whole = max((text.cell_len for text in (*texts, *map(Text, heads))), default=0)
        grid.add_column(
            Text(column.heading),
            justify="right" if column.kind == "number" else "left",
            overflow="fold",
            width=whole if column.kind in fixed else None,
        )
    for cells in zip(*(part.texts for part in parts), strict=True):
        grid.add_row(*cells)
    return grid

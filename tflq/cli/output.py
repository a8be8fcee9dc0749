"""What commands print: tables that fit the terminal, plain lines, JSON."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from tflq import units
from tflq.api.result import PageResult, Result, plain
from tflq.cli.in_force import WIDE
from tflq.cli.progress import progress as progress
from tflq.quoting import Json as Json
from tflq.quoting import json_text, shown
from tflq.units import number as number
from tflq.units import size as size

_PLAIN_WIDTH = 10_000  # no terminal: a line is as long as it needs to be, whatever COLUMNS says
GAP = 3
"""Spaces between two columns."""
_SHORTEST_NAME = 15
"""Characters of a name that are left before a column is dropped: a head, three dots, and the tail that tells more."""


@dataclass(frozen=True)
class Fitted:
    """A table that fits.

    Attributes:
        columns: those that stay, by position.
        widths: of each of them, in cells of the terminal.
        rows: their cells; no word is wider than its column.
    """

    columns: tuple[int, ...]
    widths: tuple[int, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class _Column:
    """Widths of a column: all its cells in one line, and the narrowest that cuts no word but names."""

    natural: int
    floor: int


def fitted(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int,
    right: Sequence[str] = (),
    least: Sequence[str] = (),
) -> Fitted:
    """Fit a table into a width.

    Columns of words get narrower, the widest first: they wrap between words, and words that are wider than their column
    are names, which are shortened in the middle, down to 15 characters. Numbers and drawings (cells without a letter
    or digit) stay whole. What still does not fit is dropped: columns of `least` in their order, then the last ones. The
    first column stays.

    Args:
        columns: heads.
        rows: cells, as many as columns.
        width: of the terminal.
        right: heads of the columns of numbers, which keep their width.
        least: heads of the columns to drop first.
    """
    facts = [_measure(head, [row[n] for row in rows], head in right) for n, head in enumerate(columns)]
    order = [n for name in least for n, head in enumerate(columns) if head == name]
    order += [n for n in reversed(range(len(columns))) if n not in order]
    kept = set(range(len(columns)))
    for drop in order:
        if sum(facts[n].floor for n in kept) + GAP * (len(kept) - 1) <= width or len(kept) == 1:
            break
        if drop:
            kept.discard(drop)
    stay = tuple(sorted(kept))
    widths = _widths([facts[n] for n in stay], width)
    cells = (tuple(_short_words(row[n], w) for n, w in zip(stay, widths, strict=True)) for row in rows)
    return Fitted(stay, widths, tuple(cells))


def _measure(head: str, cells: Sequence[str], is_number: bool) -> _Column:
    natural = max(map(cell_len, (head, *cells)))
    words = [word for cell in cells for word in cell.split()]
    if is_number or not any(c.isalnum() for cell in cells for c in cell):
        return _Column(natural, max((cell_len(w) for w in (*head.split(), *cells)), default=0))
    head_floor = max(map(cell_len, head.split()), default=0)
    return _Column(natural, max(head_floor, min(_SHORTEST_NAME, max(map(cell_len, words), default=0))))


def _widths(columns: Sequence[_Column], width: int) -> tuple[int, ...]:
    """Take cells from the widest column until all fit, or all are at their floor."""
    found = [c.natural for c in columns]
    while sum(found) + GAP * (len(found) - 1) > width:
        room = [n for n, c in enumerate(columns) if found[n] > c.floor]
        if not room:
            break
        found[max(room, key=lambda n: found[n])] -= 1
    return tuple(found)


def _short_words(cell: str, width: int) -> str:
    """Shorten the words of a cell that are wider than a column."""
    if all(len(word) <= width for word in cell.split()):
        return cell
    return " ".join(units.short(word, width) for word in cell.split(" "))


def line(text: str = "") -> None:
    """Print one line, names of files and tensors in it escaped (`quoting.shown`).

    A terminal gets it in lines of its width, cut between words; not so lines with a command to copy.
    """
    text = shown(text)
    if not sys.stdout.isatty() or is_wide() or "tflq " in text:
        return _write(text)
    width = shutil.get_terminal_size().columns
    more = " " * (len(text) - len(text.lstrip()) + 2)
    parts = textwrap.wrap(text, width, subsequent_indent=more, break_long_words=False, break_on_hyphens=False)
    return _write("\n".join(parts))


def lines(texts: Iterable[str]) -> None:
    """Print several lines."""
    for text in texts:
        line(text)


def flush() -> None:
    """Let readers of a pipe see what was printed, before work that has no end."""
    sys.stdout.flush()


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Sequence[str] = (),
    title: str = "",
    least: Sequence[str] = (),
) -> None:
    """Print a table.

    On a terminal it fits the terminal (`fit.fitted`); elsewhere, and with --wide, it is as wide as its content.

    Args:
        columns: heads.
        rows: cells, as many as columns.
        right: heads of the columns of numbers.
        title: a line above it.
        least: heads of the columns that a narrow terminal goes without, the least important one in front.
    """
    if title:
        line(title)
    console = Console(markup=False, highlight=False, emoji=False, color_system=None, file=sys.stdout)
    if is_wide() or not console.is_terminal:
        console.width = _PLAIN_WIDTH
    cells = [tuple(map(shown, row)) for row in rows]
    found = fitted(columns, cells, console.width, right, least)
    console.width = max(console.width, sum(found.widths) + GAP * len(found.columns))
    grid = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for n in found.columns:
        grid.add_column(columns[n], justify="right" if columns[n] in right else "left", overflow="fold")
    for row in found.rows:
        grid.add_row(*row)
    with console.capture() as capture:
        console.print(grid)
    for text in capture.get().splitlines():
        line(text.rstrip())
    left_out = [head or "a drawing" for n, head in enumerate(columns) if n not in found.columns]
    if left_out:
        line(f"left out: {', '.join(left_out)}; --wide shows all")


def short(name: str) -> str:
    """Shorten a name for a table or a sentence; with --wide it stays whole."""
    return name if is_wide() else units.short(name)


def some(names: Sequence[str]) -> str:
    """List up to five names, and say how many more there are."""
    return ", ".join(map(short, names[:5])) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def is_wide() -> bool:
    """Whether the command was called with --wide."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(WIDE))


def pairs(values: Mapping[str, str]) -> None:
    """Print "name  value" lines with the values aligned."""
    width = max(map(len, values), default=0)
    for name, value in values.items():
        line(f"{name:<{width}}  {value}".rstrip())


def json_report(report: Mapping[str, Json]) -> None:
    """Print a report as JSON; numbers that JSON lacks are the strings "nan", "inf" and "-inf"."""
    _write(json_text(plain(report), indent=2))


def show(found: Result, as_json: bool, text: Callable[[], object], page: Path | None = None) -> None:
    """Write the page of a result where one is asked for, and print it: as JSON, or as what `text` prints."""
    if page is not None and isinstance(found, PageResult):
        found.write_report(page)
    if as_json:
        json_report(found.to_dict())
    else:
        text()


def warn(message: str) -> None:
    """Print a remark on standard error."""
    sys.stdout.flush()
    sys.stderr.write(f"tflq: {shown(message)}\n")


def note(message: str) -> None:
    """Print a line on how far work is to standard error; nothing where that is no terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"{shown(message)}\n")


def _write(text: str) -> None:
    """Print a text; a character that the terminal's encoding lacks, such as those that draw bars, becomes "?"."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    sys.stdout.write(f"{text.encode(encoding, 'replace').decode(encoding)}\n")

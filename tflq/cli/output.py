"""What commands print: aligned tables and plain lines, JSON."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from tflq import units
from tflq.api.result import Result, plain
from tflq.cli.fit import GAP, fitted
from tflq.cli.in_force import WIDE
from tflq.cli.progress import progress as progress
from tflq.quoting import Json as Json
from tflq.quoting import json_text, shown
from tflq.units import number as number
from tflq.units import size as size

_PLAIN_WIDTH = 10_000  # no terminal: a line is as long as it needs to be, whatever COLUMNS says


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


def show(found: Result, as_json: bool, text: Callable[[], object]) -> None:
    """Print a result: as JSON, or as what `text` prints."""
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

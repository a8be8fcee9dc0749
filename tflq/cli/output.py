"""What commands print: aligned tables and plain lines, JSON, and a progress bar on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from tflq.api.result import Json as Json
from tflq.api.result import Result, plain
from tflq.quoting import json_text, shown
from tflq.units import number as number
from tflq.units import short as short
from tflq.units import size as size

_PLAIN_WIDTH = 10_000  # no terminal: a line is as long as it needs to be, whatever COLUMNS says
_SECONDS_UNTIL_BAR = 2.0


def line(text: str = "") -> None:
    """Print one line, names of files and tensors in it escaped (`quoting.shown`)."""
    _write(shown(text))


def lines(texts: Iterable[str]) -> None:
    """Print several lines."""
    for text in texts:
        line(text)


def flush() -> None:
    """Let readers of a pipe see what was printed, before work that has no end."""
    sys.stdout.flush()


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = (), title: str = "") -> None:
    """Print a table; `right` names the columns of numbers.

    On a terminal it fits the terminal, elsewhere it is as wide as its content.
    """
    if title:
        line(title)
    grid = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in columns:
        grid.add_column(name, justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        grid.add_row(*map(shown, row))
    console = Console(markup=False, highlight=False, emoji=False, file=sys.stdout)
    if not console.is_terminal:
        console.width = _PLAIN_WIDTH
    with console.capture() as capture:
        console.print(grid)
    for text in capture.get().splitlines():
        line(text.rstrip())


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


def _write(text: str) -> None:
    """Print a text; a character that the terminal's encoding lacks, such as those that draw bars, becomes "?"."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    sys.stdout.write(f"{text.encode(encoding, 'replace').decode(encoding)}\n")


class Bar:
    """A progress bar for work that lasts over two seconds; nothing where standard error is no terminal.

    Example:
        with Bar("verify", 100) as bar:
            bar.advance(10)
    """

    def __init__(self, what: str, total: int) -> None:
        self._what, self._total, self._done = what, total, 0
        self._started = time.monotonic()
        self._progress: Progress | None = None
        self._enabled = sys.stderr.isatty()

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def advance(self, count: int) -> None:
        """Add finished samples or bytes."""
        self._done += count
        if not self._enabled:
            return
        if self._progress is None and time.monotonic() - self._started > _SECONDS_UNTIL_BAR:
            name = TextColumn("{task.description}", markup=False)
            columns = (name, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._progress.add_task(shown(self._what), total=self._total)
            self._progress.start()
        if self._progress is not None:
            self._progress.update(self._task, completed=self._done)


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[int], object]]:
    """Yield what adds finished parts to a bar: the `progress` of every use case."""
    with Bar(what, total) as bar:
        yield bar.advance

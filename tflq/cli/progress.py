"""`tflq.progress`: a progress bar, on standard error of a terminal or in a notebook."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from tflq.quoting import escape_unprintable

_SECONDS_UNTIL_BAR = 2.0


class _Shown(Protocol):
    def update(self, done: int) -> None:
        """Show the finished amount."""

    def close(self) -> None:
        """End."""


class _TerminalBar:
    """A line that is removed at the end of the work."""

    def __init__(self, what: str, total: int) -> None:
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
        self._progress = Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True)
        self._task = self._progress.add_task(escape_unprintable(what), total=total)
        self._progress.start()

    def update(self, done: int) -> None:
        self._progress.update(self._task, completed=done)

    def close(self) -> None:
        self._progress.stop()


class _NotebookBar:
    """IPython's own bar, which needs no package of widgets; it remains below the cell."""

    def __init__(self, total: int) -> None:
        from IPython.display import ProgressBar

        self._bar = ProgressBar(total)
        self._bar.display()

    def update(self, done: int) -> None:
        self._bar.progress = done

    def close(self) -> None:
        """Keep the bar."""


class Bar:
    """A progress bar for work of more than two seconds, if there is a terminal or notebook.

    Example:
        with Bar("verify", 100) as bar:
            bar.advance(10)
    """

    def __init__(self, what: str, total: int) -> None:
        self._what, self._total, self._done = what, total, 0
        self._started = time.monotonic()
        self._shown: _Shown | None = None
        self._in_notebook = in_notebook()
        self._enabled = self._in_notebook or sys.stderr.isatty()

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._shown is not None:
            self._shown.close()

    def advance(self, count: int) -> None:
        """Add finished samples or bytes."""
        self._done += count
        if self._enabled and self._shown is None and time.monotonic() - self._started > _SECONDS_UNTIL_BAR:
            bar = _NotebookBar(self._total) if self._in_notebook else _TerminalBar(self._what, self._total)
            self._shown = bar
        if self._shown is not None:
            self._shown.update(self._done)


def in_notebook() -> bool:
    """Return whether the code runs in a cell of a notebook: IPython is loaded, and its shell has a kernel."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[int], object]]:
    """Yield a function that adds finished parts to a bar, for the argument `progress` of every use case.

    Args:
        what: Name of the work.
        total: Total number of samples or bytes.
    """
    with Bar(what, total) as bar:
        yield bar.advance

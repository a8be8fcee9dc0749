"""Printing: results in the form that --json, --csv and --report choose, plain lines, remarks."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from tflq.api.result import Result
from tflq.cli.in_force import option_value
from tflq.cli.progress import progress as progress
from tflq.cli.terminal import page_lines, text_lines
from tflq.quoting import escape_unprintable, json_text


def line(text: str = "") -> None:
    """Print one line, names of files and tensors in it escaped; a terminal gets it in lines of its width."""
    _write("\n".join(text_lines(text, width())))


def lines(texts: Iterable[str]) -> None:
    """Print several lines."""
    for text in texts:
        line(text)


def flush() -> None:
    """Flush standard output before work that does not end."""
    sys.stdout.flush()


def width() -> int | None:
    """Return the cells of the terminal; None with --wide, and if standard output is no terminal."""
    return None if option_value("wide") or not sys.stdout.isatty() else shutil.get_terminal_size().columns


def show(result: Result, *requested: str) -> int:
    """Print a result as JSON, CSV or text, write its page if --report names one, and return the exit status.

    Args:
        result: Result of the use case.
        requested: Names of tables that the text shows whole.
    """
    page, table = option_value("report"), option_value("as_csv")
    if isinstance(page, Path):
        result.write_report(page)
    if option_value("as_json"):
        _write(json_text(result.to_dict(), indent=2))
    elif isinstance(table, str):
        sys.stdout.write(result.to_csv(table))
    else:
        for text in page_lines(result.page(), width(), requested):
            _write(text)
    return result.status


def remark(text: str) -> None:
    """Print a line after the text of a result, except with --json and --csv."""
    if not option_value("as_json") and option_value("as_csv") is None:
        line(text)


def warn(message: str) -> None:
    """Print a remark on standard error."""
    sys.stdout.flush()
    sys.stderr.write(f"tflq: {escape_unprintable(message)}\n")


def note(message: str) -> None:
    """Print a line on the progress of work to standard error, if that is a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(f"{escape_unprintable(message)}\n")


def _write(text: str) -> None:
    """Print a text; a character that the terminal's encoding lacks, such as a bar of a chart, becomes "?"."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    sys.stdout.write(f"{text.encode(encoding, 'replace').decode(encoding)}\n")

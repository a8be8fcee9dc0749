"""The option --report: the result as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tflq.cli.options import report_option as report_option

if TYPE_CHECKING:
    from tflq.report import Page


def write_report(path: Path, page: Page) -> None:
    """Write a page."""
    from tflq.files import write_bytes
    from tflq.report import render

    write_bytes(path, render(page))

"""The option --report: the result as one HTML page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from tflq.report import Page

_Function = TypeVar("_Function", bound=Callable[..., Any])  # click's own type for decorated functions


def _checked(ctx: click.Context, param: click.Parameter, value: Path | None) -> Path | None:
    """Refuse before the work what could not be written after it."""
    if value is None:
        return None
    if value.suffix.lower() not in (".html", ".htm"):
        raise click.BadParameter(f"{value}: the name must end in .html", ctx, param)
    if not value.parent.is_dir():
        raise click.BadParameter(f"{value}: the folder {value.parent} does not exist", ctx, param)
    try:
        import jinja2  # noqa: F401
    except ImportError:
        raise click.UsageError("--report needs jinja2: pip install 'tflq[report]'") from None
    return value


def report_option(function: _Function) -> _Function:
    """Add --report; the function gets the path, or None, as `report`."""
    return click.option(
        "--report",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE.html",
        callback=_checked,
        help="Write the result as one HTML page that needs no network, too (extra: report).",
    )(function)


def write_report(path: Path, page: Page) -> None:
    """Write a page."""
    from tflq.files import write_bytes
    from tflq.report import render

    write_bytes(path, render(page))

"""A page: a result's verdict, facts and tables, rendered as HTML by jinja2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from tflq import __version__
from tflq.errors import MissingExtraError
from tflq.quoting import escape_unprintable
from tflq.report.table import Table, Verdict
from tflq.report.what_was_run import WhatWasRun


@dataclass(frozen=True)
class Page:
    """A result as people read it.

    Attributes:
        title: Title of the page.
        verdict: Outcome, the first sentence.
        facts: Name and value of the circumstances.
        notes: Sentences below the facts.
        tables: Sections, in order.
        run: The call that was made; None if it was not recorded.
        figures: The result as JSON text, folded away.
    """

    title: str
    verdict: Verdict
    facts: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = ()
    tables: Sequence[Table] = ()
    run: WhatWasRun | None = None
    figures: str = ""


_TEMPLATE = "page.html.j2"


def render(page: Page) -> bytes:
    """Return a page as HTML in UTF-8, with its style and drawings inside.

    Raises:
        MissingExtraError: jinja2 is not installed.
    """
    try:
        from jinja2 import Environment, StrictUndefined
    except ImportError:
        raise MissingExtraError("reports need jinja2: pip install 'tflq[report]'") from None
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_escape_value
    )
    source = files("tflq.report").joinpath(_TEMPLATE).read_text("utf-8")
    return environment.from_string(source).render(page=page, version=__version__).encode("utf-8")


def _escape_value(value: object) -> object:
    """Return a value of the template, with names of files and tensors escaped; drawings are Markup and unchanged."""
    return escape_unprintable(value) if type(value) is str else value

"""A page as HTML, by jinja2."""

from __future__ import annotations

from importlib.resources import files

from tflq import __version__
from tflq.errors import MissingExtraError
from tflq.quoting import shown
from tflq.report.page import Chart, Facts, Page, Prose, Record, Table
from tflq.units import LONGEST_NAME, short

_TEMPLATE = "page.html.j2"
_KINDS = {Prose: "prose", Table: "table", Facts: "facts", Record: "record", Chart: "chart"}


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
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_finalized
    )
    environment.filters["brief"] = _brief
    environment.filters["kind"] = lambda block: _KINDS[type(block)]
    source = files("tflq.report").joinpath(_TEMPLATE).read_text("utf-8")
    return environment.from_string(source).render(page=page, version=__version__).encode("utf-8")


def _brief(text: str) -> object:
    """Return a text with its long words shortened, the whole behind each of them; such words are names."""
    from markupsafe import Markup, escape

    def shortened(word: str) -> Markup:
        whole = shown(word)
        if len(whole) <= LONGEST_NAME:
            return escape(whole)
        return Markup('<abbr title="{}">{}</abbr>').format(whole, short(whole))

    return Markup(" ").join(map(shortened, text.split(" ")))


def _finalized(value: object) -> object:
    """Return what the template prints: names of files and tensors escaped; drawings are Markup and stay."""
    return shown(value) if type(value) is str else value

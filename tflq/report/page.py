"""A page: what stands on it, whatever it looks like, as HTML by jinja2."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files

from tflq import __version__
from tflq.errors import MissingExtraError
from tflq.quoting import shown
from tflq.units import LONGEST_NAME, short


@dataclass(frozen=True)
class Prose:
    """Paragraphs of plain text."""

    paragraphs: Sequence[str]


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        columns: their heads.
        rows: cells as text, as many as columns.
        numbers: heads of the columns of numbers, which are aligned to the right.
        marked: rows to stand out, by number.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Sequence[str] = ()
    marked: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Facts:
    """Names with their values, which are shown whole."""

    pairs: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Record:
    """A long text that is folded away until it is asked for.

    Attributes:
        title: what it is.
        text: whole, its lines as they are.
    """

    title: str
    text: str


@dataclass(frozen=True)
class Chart:
    """A drawing.

    Attributes:
        svg: an <svg> element.
        caption: what it shows, for those who do not see it, too.
    """

    svg: str
    caption: str


Block = Prose | Table | Facts | Record | Chart


@dataclass(frozen=True)
class Section:
    """A heading and what is below it."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Page:
    """A report.

    Attributes:
        title: of the page.
        verdict: its first sentence: what came out, and where to look.
        facts: what was run: name -> value.
        sections: in order.
    """

    title: str
    verdict: str
    facts: Sequence[tuple[str, str]] = ()
    sections: Sequence[Section] = field(default_factory=tuple)


def decibels(value: float) -> str:
    """Write a ratio in dB."""
    return "" if math.isnan(value) else f"{value:.1f}"


def share(value: float) -> str:
    """Write a share in percent; empty where it is none."""
    return "" if not value or math.isnan(value) else f"{value:.2%}"


def count(number: int, one: str, many: str | None = None) -> str:
    """Write "1 layer", "2 layers"."""
    return f"{number} {one if number == 1 else many or f'{one}s'}"


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

"""What stands on a page, without how it looks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field


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

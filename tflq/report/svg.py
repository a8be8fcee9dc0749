"""Drawings as SVG elements: bars along a network, histograms, an area over time, points of size against quality."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tflq.quoting import escape_unprintable, xml_attribute, xml_text

WIDTH, HEIGHT = 720, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 8, 22, 34
TICKS = 90
"""Characters that fit below the bars."""


@dataclass(frozen=True)
class Chart:
    """A drawing.

    Attributes:
        svg: An <svg> element.
        caption: Description of the drawing in a sentence.
    """

    svg: str
    caption: str


@dataclass(frozen=True)
class Mark:
    """One value of a drawing.

    Attributes:
        value: Height of the value; NaN leaves a gap.
        label: Text of the tooltip.
        is_hot: True to highlight the value.
    """

    value: float
    label: str
    is_hot: bool = False


@dataclass(frozen=True)
class Dot:
    """One point: coordinates, text of the tooltip, whether it is on the line, whether it is highlighted."""

    x: float
    y: float
    label: str
    on_line: bool = False
    is_hot: bool = False


def bars(
    marks: Sequence[Mark],
    axis: str,
    below: str,
    ticks: Mapping[int, str] | None = None,
    limit: tuple[float, str] | None = None,
) -> str:
    """Draw a bar for each mark, from 0 up or down; infinite values fill the height.

    Args:
        marks: Values.
        axis: Name of the values, with their unit.
        below: Name of the bars.
        ticks: Names of some bars, by number; omitted on phones.
        limit: Value of a horizontal line, and its name.
    """
    finite = [m.value for m in marks if math.isfinite(m.value)] + ([limit[0]] if limit else [])
    scale = _Scale(min([0.0, *finite]), max([0.0, *finite]) or 1.0)
    step = (WIDTH - _LEFT - _RIGHT) / max(len(marks), 1)
    parts = []
    for n, mark in enumerate(marks):
        if math.isnan(mark.value):
            continue
        top, bottom = sorted((scale.y(mark.value), scale.y(0)))
        x, width = _LEFT + n * step, max(step * 0.8, 0.5)
        kind = "bar hot" if mark.is_hot else "bar"
        parts.append(
            f'<rect class="{kind}" x="{x:.1f}" y="{top:.1f}" width="{width:.1f}" height="{max(bottom - top, 0.5):.1f}">'
            f"<title>{_text(mark.label)}</title></rect>"
        )
    for n, text in (ticks or {}).items():
        x = _LEFT + n * step + step * 0.4
        parts.append(
            f'<text x="{x:.1f}" y="{HEIGHT - _BOTTOM + 14}" text-anchor="middle" class="tick">{_text(text)}</text>'
        )
    return _frame(axis, below, [*scale.lines(), *parts, *(_limit(scale, *limit) if limit else ())])


def _limit(scale: _Scale, value: float, name: str) -> tuple[str, str]:
    y, right = scale.y(value), WIDTH - _RIGHT
    return (
        f'<line class="limit" x1="{_LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>',
        f'<text x="{right}" y="{y - 4:.1f}" text-anchor="end">{_text(name)}</text>',
    )


def histogram(counts: Sequence[int], first: int, below: str) -> str:
    """Draw counts of differences first..first+n-1; the height is the fourth root, so that rare values are visible."""
    marks = [Mark(count**0.25, f"{first + n:+d}: {count}", first + n != 0) for n, count in enumerate(counts)]
    ends = {n: f"{first + n:+d}" for n in (0, len(counts) - 1)}
    return bars(marks, "", below, {**ends, -first: "0"})


def area(marks: Sequence[Mark], axis: str, below: str) -> str:
    """Draw values over steps as an area, the hot ones marked."""
    scale = _Scale(0.0, max((m.value for m in marks), default=1.0) or 1.0)
    step = (WIDTH - _LEFT - _RIGHT) / max(len(marks), 1)
    outline = [f"M{_LEFT},{scale.y(0):.1f}"]
    parts = []
    for n, mark in enumerate(marks):
        x, y = _LEFT + n * step, scale.y(mark.value)
        outline.append(f"L{x:.1f},{y:.1f} L{x + step:.1f},{y:.1f}")
        kind = ' class="hot" fill-opacity="0.5"' if mark.is_hot else ' fill-opacity="0"'
        parts.append(
            f'<rect{kind} x="{x:.1f}" y="{y:.1f}" width="{step:.1f}" height="{scale.y(0) - y:.1f}">'
            f"<title>{_text(mark.label)}</title></rect>"
        )
    outline.append(f"L{_LEFT + len(marks) * step:.1f},{scale.y(0):.1f} Z")
    return _frame(axis, below, [*scale.lines(), f'<path class="area" d="{" ".join(outline)}"/>', *parts])


def scatter(dots: Sequence[Dot], axis: str, below: str) -> str:
    """Draw points, and a line through the points that are on it, by x."""
    finite = [d for d in dots if math.isfinite(d.x) and math.isfinite(d.y)]
    scale = _Scale(min((d.y for d in finite), default=0.0), max((d.y for d in finite), default=1.0))
    low, high = min((d.x for d in finite), default=0.0), max((d.x for d in finite), default=1.0)
    span = (high - low) or 1.0

    def x_of(x: float) -> float:
        return _LEFT + (x - low) / span * (WIDTH - _LEFT - _RIGHT - 8) + 4

    line = " ".join(f"{x_of(d.x):.1f},{scale.y(d.y):.1f}" for d in sorted(finite, key=lambda d: d.x) if d.on_line)
    parts = [f'<polyline class="curve" points="{line}"/>'] if line else []
    for dot in sorted(finite, key=lambda d: d.is_hot):
        kind, radius = ("hot", 5) if dot.is_hot else ("bar", 3)
        parts.append(
            f'<circle class="{kind}" cx="{x_of(dot.x):.1f}" cy="{scale.y(dot.y):.1f}" r="{radius}">'
            f"<title>{_text(dot.label)}</title></circle>"
        )
    ends = [
        f'<text x="{_LEFT}" y="{HEIGHT - _BOTTOM + 14}">{_short(low)}</text>',
        f'<text x="{WIDTH - _RIGHT}" y="{HEIGHT - _BOTTOM + 14}" text-anchor="end">{_short(high)}</text>',
    ]
    return _frame(axis, below, [*scale.lines(), *parts, *ends])


def cells(rows: Sequence[Sequence[float]], above: str, left: str) -> str:
    """Draw a map: a square for each number, the larger the stronger; 0 stays empty.

    Args:
        rows: Numbers of at least 0, in rows of one length.
        above: Name of the columns.
        left: Name of the rows.
    """
    columns = max((len(row) for row in rows), default=1)
    side = max(3, min(14, 330 // max(columns, 1), 330 // max(len(rows), 1)))
    most = max((v for row in rows for v in row), default=0) or 1
    parts = [
        f'<rect class="hot" x="{16 + x * side}" y="{16 + y * side}" width="{side - 0.5}" height="{side - 0.5}" '
        f'fill-opacity="{0.25 + 0.75 * v / most:.2f}"><title>{y}, {x}: {_short(v)}</title></rect>'
        for y, row in enumerate(rows)
        for x, v in enumerate(row)
        if v
    ]
    width, height = columns * side, len(rows) * side
    frame = f'<rect class="axis" x="16" y="16" width="{width}" height="{height}" fill="none"/>'
    words = (
        f'<text x="16" y="11">{_text(above)}</text>'
        f'<text transform="translate(11 {16 + height}) rotate(-90)">{_text(left)}</text>'
    )
    return (
        f'<svg viewBox="0 0 {width + 20} {height + 20}" style="max-width: {max(width + 20, 120)}px" role="img">'
        f"{words}{frame}{''.join(parts)}</svg>"
    )


class _Scale:
    """Scale from values to heights, with lines at round numbers."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = (low, high) if high > low else (low - 1, low + 1)

    def y(self, value: float) -> float:
        """Return the height of a value, clipped to the scale."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM)

    def lines(self) -> list[str]:
        """Return lines with their numbers."""
        rough = (self.high - self.low) / 4
        unit = 10.0 ** math.floor(math.log10(rough))
        step = next(unit * n for n in (1, 2, 5, 10) if unit * n >= rough)
        first = math.ceil(self.low / step)
        lines = []
        for n in range(first, math.floor(self.high / step) + 1):
            y = self.y(n * step)
            lines.append(f'<line class="axis" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
            lines.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_short(n * step)}</text>')
        return lines


def _frame(axis: str, below: str, parts: Sequence[str]) -> str:
    label = f'<text x="4" y="12">{_text(axis)}</text>' if axis else ""
    under = f'<text x="{(WIDTH + _LEFT) / 2:.0f}" y="{HEIGHT - 6}" text-anchor="middle">{_text(below)}</text>'
    name = xml_attribute(escape_unprintable(f"{axis} {below}".strip()))
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label={name}>{"".join(parts)}{label}{under}</svg>'


def _text(text: str) -> str:
    return xml_text(escape_unprintable(text))


def _short(value: float) -> str:
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            return f"{value / (1000 if unit == 'k' else limit):.3g}{unit}"
    return f"{value:.4g}"

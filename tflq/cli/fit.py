"""A table in the width of a terminal: names shorter first, then columns left out, the least important ones in front."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from tflq.units import short

GAP = 3
"""Spaces between two columns."""
_SHORTEST_NAME = 15
"""Characters of a name that are left before a column is dropped: a head, three dots, and the tail that tells more."""


@dataclass(frozen=True)
class Fitted:
    """A table that fits.

    Attributes:
        columns: those that stay, by position.
        widths: of each of them, in cells of the terminal.
        rows: their cells; no word is wider than its column.
    """

    columns: tuple[int, ...]
    widths: tuple[int, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class _Column:
    """Widths of a column: all its cells in one line, and the narrowest that cuts no word but names."""

    natural: int
    floor: int


def fitted(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int,
    right: Sequence[str] = (),
    least: Sequence[str] = (),
) -> Fitted:
    """Fit a table into a width.

    Columns of words get narrower, the widest first: they wrap between words, and words that are wider than their column
    are names, which are shortened in the middle, down to 15 characters. Numbers and drawings (cells without a letter
    or digit) stay whole. What still does not fit is dropped: columns of `least` in their order, then the last ones. The
    first column stays.

    Args:
        columns: heads.
        rows: cells, as many as columns.
        width: of the terminal.
        right: heads of the columns of numbers, which keep their width.
        least: heads of the columns to drop first.
    """
    facts = [_measure(head, [row[n] for row in rows], head in right) for n, head in enumerate(columns)]
    order = [n for name in least for n, head in enumerate(columns) if head == name]
    order += [n for n in reversed(range(len(columns))) if n not in order]
    kept = set(range(len(columns)))
    for drop in order:
        if sum(facts[n].floor for n in kept) + GAP * (len(kept) - 1) <= width or len(kept) == 1:
            break
        if drop:
            kept.discard(drop)
    stay = tuple(sorted(kept))
    widths = _widths([facts[n] for n in stay], width)
    cells = (tuple(_short_words(row[n], w) for n, w in zip(stay, widths, strict=True)) for row in rows)
    return Fitted(stay, widths, tuple(cells))


def _measure(head: str, cells: Sequence[str], is_number: bool) -> _Column:
    natural = max(map(cell_len, (head, *cells)))
    words = [word for cell in cells for word in cell.split()]
    if is_number or not any(c.isalnum() for cell in cells for c in cell):
        return _Column(natural, max((cell_len(w) for w in (*head.split(), *cells)), default=0))
    head_floor = max(map(cell_len, head.split()), default=0)
    return _Column(natural, max(head_floor, min(_SHORTEST_NAME, max(map(cell_len, words), default=0))))


def _widths(columns: Sequence[_Column], width: int) -> tuple[int, ...]:
    """Take cells from the widest column until all fit, or all are at their floor."""
    found = [c.natural for c in columns]
    while sum(found) + GAP * (len(found) - 1) > width:
        room = [n for n, c in enumerate(columns) if found[n] > c.floor]
        if not room:
            break
        found[max(room, key=lambda n: found[n])] -= 1
    return tuple(found)


def _short_words(cell: str, width: int) -> str:
    """Shorten the words of a cell that are wider than a column."""
    if all(len(word) <= width for word in cell.split()):
        return cell
    return " ".join(short(word, width) for word in cell.split(" "))

"""Numbers and names for readers; without imports, because every command uses it."""

from __future__ import annotations

import math
from collections.abc import Sequence

LONGEST_NAME = 48
"""Largest length of a name in tables and sentences; longer names are shortened."""


def size(count: int) -> str:
    """Format a number of bytes as B, KiB or MiB."""
    if count < 1 << 10:
        return f"{count} B"
    return f"{count / (1 << 10):.1f} KiB" if count < 1 << 20 else f"{count / (1 << 20):.1f} MiB"


def short(name: str, width: int = LONGEST_NAME) -> str:
    """Shorten a name in the middle for a table or a sentence; JSON contains the full name.

    Two thirds of the remaining characters are the end, where names of one network differ
    (`model/block_3/conv/BiasAdd`).
    """
    if len(name) <= width:
        return name
    left = max(width - 3, 2)
    head = left // 3
    return f"{name[:head]}...{name[head - left :]}"


def number(value: float) -> str:
    """Format a number in up to six digits, without decimals for an integral value."""
    return f"{int(value)}" if math.isfinite(value) and value == int(value) and abs(value) < 1e15 else f"{value:.6g}"


def range_list(numbers: Sequence[int]) -> str:
    """Format integers in ascending order, ranges as 3..7; after eight parts the number of the remaining integers."""
    parts: list[tuple[int, int]] = []
    for n in sorted(numbers):
        if parts and n == parts[-1][1] + 1:
            parts[-1] = (parts[-1][0], n)
        else:
            parts.append((n, n))
    words = [str(a) if a == b else f"{a}, {b}" if b == a + 1 else f"{a}..{b}" for a, b in parts[:8]]
    more = sum(b - a + 1 for a, b in parts[8:])
    text = ", ".join(words) + (f" and {more} more" if more else "")
    return " and ".join(text.rsplit(", ", 1)) if not more else text


def finite(text: str) -> float | None:
    """Parse a finite number; None for any other text."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def share(value: float) -> str:
    """Format a share in percent; empty for 0 and NaN."""
    return "" if not value or math.isnan(value) else f"{value:.2%}"


def count(number: int, one: str, many: str | None = None) -> str:
    """Return "1 layer", "2 layers"."""
    return f"{number} {one if number == 1 else many or f'{one}s'}"

"""Numbers and names as people read them; imports nothing, because every command does."""

from __future__ import annotations

import math
from collections.abc import Sequence

LONGEST_NAME = 48
"""Characters of a name in tables and sentences; a longer one is shortened."""


def size(count: int) -> str:
    """Write a number of bytes, with the KiB or MiB that it is."""
    if count < 1 << 10:
        return f"{count} B"
    return f"{count / (1 << 10):.1f} KiB" if count < 1 << 20 else f"{count / (1 << 20):.1f} MiB"


def short(name: str, width: int = LONGEST_NAME) -> str:
    """Shorten a name in the middle for a table or a sentence; JSON has it whole.

    Two thirds of what stays are the tail: names of one network differ there (`model/block_3/conv/BiasAdd`).
    """
    if len(name) <= width:
        return name
    left = max(width - 3, 2)
    head = left // 3
    return f"{name[:head]}...{name[head - left :]}"


def number(value: float) -> str:
    """Write a number in up to six digits, a whole one as such."""
    return f"{int(value)}" if math.isfinite(value) and value == int(value) and abs(value) < 1e15 else f"{value:.6g}"


def listed(numbers: Sequence[int]) -> str:
    """Write whole numbers in order, runs as 3..7; after eight parts how many more there are."""
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
    """Read a finite number; None where the text is none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def share(value: float) -> str:
    """Write a share in percent; an empty text for 0 and NaN."""
    return "" if not value or math.isnan(value) else f"{value:.2%}"


def count(number: int, one: str, many: str | None = None) -> str:
    """Write "1 layer", "2 layers"."""
    return f"{number} {one if number == 1 else many or f'{one}s'}"

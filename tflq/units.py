"""Numbers and names as people read them; imports nothing, because every command does."""

from __future__ import annotations

import math
from collections.abc import Sequence


def size(count: int) -> str:
    """Write a number of bytes, with the KiB or MiB that it is."""
    if count < 1 << 10:
        return f"{count} B"
    return f"{count / (1 << 10):.1f} KiB" if count < 1 << 20 else f"{count / (1 << 20):.1f} MiB"


def short(name: str, width: int = 48) -> str:
    """Cut a tensor's name for a table or a sentence; JSON has it whole."""
    return name if len(name) <= width else f"{name[: width - 3]}..."


def number(value: float) -> str:
    """Write a number in up to six digits, a whole one as such."""
    return f"{int(value)}" if math.isfinite(value) and value == int(value) and abs(value) < 1e15 else f"{value:.6g}"


def listed(numbers: Sequence[int], most: int = 8) -> str:
    """Write whole numbers in order, runs as 3..7; after `most` parts how many more there are."""
    parts: list[tuple[int, int]] = []
    for n in sorted(numbers):
        if parts and n == parts[-1][1] + 1:
            parts[-1] = (parts[-1][0], n)
        else:
            parts.append((n, n))
    words = [str(a) if a == b else f"{a}, {b}" if b == a + 1 else f"{a}..{b}" for a, b in parts[:most]]
    more = sum(b - a + 1 for a, b in parts[most:])
    text = ", ".join(words) + (f" and {more} more" if more else "")
    return " and ".join(text.rsplit(", ", 1)) if not more else text

"""Numbers and names as people read them; imports nothing, because every command does."""

from __future__ import annotations

import math


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

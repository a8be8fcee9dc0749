"""Numbers with their units, as people read them; imports nothing, because every command does."""

from __future__ import annotations


def size(count: int) -> str:
    """Write a number of bytes, with the KiB or MiB that it is."""
    if count < 1 << 10:
        return f"{count} B"
    return f"{count / (1 << 10):.1f} KiB" if count < 1 << 20 else f"{count / (1 << 20):.1f} MiB"

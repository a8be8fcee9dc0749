"""Sentences and numbers that several pages share."""

from __future__ import annotations

import math


def decibels(value: float) -> str:
    """Write a ratio in dB."""
    return "" if math.isnan(value) else f"{value:.1f}"


def share(value: float) -> str:
    """Write a share in percent; empty where it is none."""
    return "" if not value or math.isnan(value) else f"{value:.2%}"


def count(number: int, one: str, many: str | None = None) -> str:
    """Write "1 layer", "2 layers"."""
    return f"{number} {one if number == 1 else many or f'{one}s'}"


def size(number: int) -> str:
    """Write a number of bytes."""
    if number < 1 << 10:
        return f"{number} B"
    return f"{number / (1 << 10):.1f} KiB" if number < 1 << 20 else f"{number / (1 << 20):.1f} MiB"

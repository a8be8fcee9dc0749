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

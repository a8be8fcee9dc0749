"""Brackets around parts of C expressions: as many as are needed, and few more."""

from __future__ import annotations


def _is_wrapped(text: str) -> bool:
    """Whether one pair of brackets holds the whole text."""
    if not (text.startswith("(") and text.endswith(")")):
        return False
    depth = 0
    for n, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0:
            return n == len(text) - 1
    return False


def atom(text: str) -> str:
    """Return a text that binds as tightly as a name."""
    plain = text.replace("_", "").replace(".", "")
    if plain.isalnum() or _is_wrapped(text):
        return text
    head = text.split("[", 1)[0].split("(", 1)[0]
    if head.replace("_", "").isalnum() and text.endswith(("]", ")")) and _closes_once(text, len(head)):
        return text
    return f"({text})"


def _closes_once(text: str, start: int) -> bool:
    depth = 0
    for n, c in enumerate(text[start:], start):
        depth += (c in "([") - (c in ")]")
        if depth == 0:
            return n == len(text) - 1
    return False


def bare(text: str) -> str:
    """Return a text without brackets around the whole of it."""
    return text[1:-1] if _is_wrapped(text) else text

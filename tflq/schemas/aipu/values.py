"""The values of Compass IR's text: numbers, words, true and false, nested lists."""

from __future__ import annotations

import re

from tflq.errors import FormatError
from tflq.quoting import compass_word
from tflq.schemas.aipu.model import Value

_INTEGER = re.compile(r"-?\d+")
_REAL = re.compile(r"-?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|inf|nan)")
LARGEST_DEPTH = 8


def parse_value(text: str) -> Value:
    """Return the value of a text.

    `-?digits` is a whole number; `1.2`, `1e-05`, `inf` a real one; `true` and `false` are truth values; `[a,[b,c]]` a
    tuple; everything else a word.

    Raises:
        FormatError: a list that does not close, or with text behind it.
    """
    if not text.startswith("["):
        return _scalar(text)
    value, end = _list(text, 0, 0)
    if end != len(text):
        raise FormatError(f"'{text[:40]}' has text behind the list's end at character {end}")
    return value


def format_value(value: Value) -> str:
    """Return the text of a value; real numbers as Python's shortest form.

    Raises:
        FormatError: a word with a character that the format keeps for itself.
    """
    if isinstance(value, tuple):
        return "[" + ",".join(format_value(item) for item in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        if compass_word(value) != value.replace(" ", "_"):
            raise FormatError(
                f"'{value[:60]}' has one of = , [ ], which Compass IR keeps for itself, or what is not printable"
            )
        return value
    return repr(value)


def _scalar(text: str) -> Value:
    if _INTEGER.fullmatch(text):
        return int(text)
    if _REAL.fullmatch(text):
        return float(text)
    return {"true": True, "false": False}.get(text, text)


def _list(text: str, start: int, depth: int) -> tuple[tuple[Value, ...], int]:
    """Read the list whose bracket stands at `start`; return it and where it ends."""
    if depth >= LARGEST_DEPTH:
        raise FormatError(f"lists are nested deeper than {LARGEST_DEPTH}")
    items: list[Value] = []
    at = start + 1
    if text[at : at + 1] == "]":
        return (), at + 1
    while True:
        if text[at : at + 1] == "[":
            item, at = _list(text, at, depth + 1)
            items.append(item)
        else:
            end = min((e for e in (text.find(",", at), text.find("]", at)) if e >= 0), default=-1)
            word = text[at:end].strip() if end >= 0 else ""
            if end < 0 or not word or "[" in word:
                raise FormatError(f"'{text[:40]}' is no list: an entry is missing or a bracket is not closed")
            items.append(_scalar(word))
            at = end
        mark = text[at : at + 1]
        at += 1
        if mark == "]":
            return tuple(items), at
        if mark != ",":
            found = f"found '{mark}' where ',' or ']' is allowed" if mark else "a bracket is not closed"
            raise FormatError(f"'{text[:40]}' is no list: {found}")

"""The text of Compass IR: its values, and the two files as they are written.

Values are numbers, words, true and false, nested lists; the files are in the layout of the Optimizer (quantised) or of
the Parser (float).

Source: as reader.py.
"""

from __future__ import annotations

import re

import numpy as np

from tflq.errors import FormatError
from tflq.quoting import compass_word
from tflq.schemas.aipu.model import STORAGE, Constant, Edge, Layer, Network, Value

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


# The Parser prints these with a fixed number of digits: key -> digits, where not all layer types agree with the type.
_DIGITS = {
    "clip_min": 6,
    "clip_max": 6,
    "negative_slope_value": 6,
    "constant_value": 6,
    "iou_threshold": 6,
    "score_threshold": 6,
    "soft_nms_sigma": 6,
}
_DIGITS_OF = {
    ("LRN", "alpha"): 6,
    ("LRN", "beta"): 6,
    ("LRN", "bias"): 6,
    ("BatchNorm", "epsilon"): 12,
    ("Activation", "alpha"): 8,
    ("Activation", "gamma"): 8,
}


def write_network(network: Network) -> tuple[str, bytes]:
    """Return the text and the bytes of the binary file.

    Constants stand back to back in the order of the text, without alignment. A quantised text ends with one blank
    line, a float one with two, and real numbers of a float one have the Parser's fixed digits where it has such.

    Raises:
        FormatError: a name with a character that the format keeps for itself.
    """
    binary = bytearray()
    sections = [[f"{key}={format_value(value)}" for key, value in network.header.items()]]
    fixed = not network.is_quantised
    sections.extend(_section(i, layer, binary, fixed) for i, layer in enumerate(network.layers))
    text = "".join("".join(f"{line}\n" for line in section) + "\n" for section in sections)
    return text + "\n" * fixed, bytes(binary)


def _section(index: int, layer: Layer, binary: bytearray, fixed: bool) -> list[str]:
    lines = [f"layer_id={index}", f"layer_name={format_value(layer.name)}", f"layer_type={format_value(layer.type)}"]
    lines += _edges("bottom", layer.bottoms) + _edges("top", layer.tops)
    for key, entry in layer.entries.items():
        if isinstance(entry, Constant):
            lines += _constant(key, entry, binary)
        else:
            lines.append(f"{key}={_formatted(layer.type, key, entry, fixed)}")
    return lines


def _formatted(kind: str, key: str, value: Value, fixed: bool) -> str:
    digits = _DIGITS_OF.get((kind, key), _DIGITS.get(key)) if fixed else None
    return f"{value:.{digits}f}" if digits is not None and isinstance(value, float) else format_value(value)


def _edges(side: str, edges: tuple[Edge, ...]) -> list[str]:
    columns: tuple[Value, ...] = (
        tuple(e.name for e in edges),
        tuple(e.shape for e in edges),
        tuple(e.dtype for e in edges),
    )
    keys = (f"layer_{side}{part}" for part in ("", "_shape", "_type"))
    return [f"{key}={format_value(column)}" for key, column in zip(keys, columns, strict=True)]


def _constant(key: str, constant: Constant, binary: bytearray) -> list[str]:
    data = np.ascontiguousarray(constant.data, np.dtype(STORAGE[constant.dtype]).newbyteorder("<")).tobytes()
    offset = len(binary)
    binary += data
    return [
        f"{key}_type={constant.dtype}",
        f"{key}_offset={offset}",
        f"{key}_size={len(data)}",
        f"{key}_shape={format_value(constant.data.shape)}",
    ]

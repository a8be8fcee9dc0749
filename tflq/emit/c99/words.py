"""Names, numbers and types as C99 takes them, and brackets: as many as expressions need, and few more."""

from __future__ import annotations

import math
import re

import numpy as np

from tflq.errors import UnsupportedError

RESERVED = frozenset(
    [
        "auto",
        "break",
        "case",
        "char",
        "const",
        "continue",
        "default",
        "do",
        "double",
        "else",
        "enum",
        "extern",
        "float",
        "for",
        "goto",
        "if",
        "inline",
        "int",
        "long",
        "register",
        "restrict",
        "return",
        "short",
        "signed",
        "sizeof",
        "static",
        "struct",
        "switch",
        "typedef",
        "union",
        "unsigned",
        "void",
        "volatile",
        "while",
        "main",
        "int8_t",
        "uint8_t",
        "int16_t",
        "uint16_t",
        "int32_t",
        "int64_t",
    ]
)
STORED = {"bool": "uint8_t", "float32": "float", "float64": "double"}


def identifier(text: str, longest: int = 48) -> str:
    """Return a name of small letters, digits and underscores that is no word of C."""
    name = re.sub(r"\W+", "_", text.lower(), flags=re.ASCII).strip("_")[:longest].rstrip("_") or "x"
    name = f"x{name}" if name[0].isdigit() else name
    return f"{name}_" if name in RESERVED else name


def stored_type(dtype: np.dtype[np.generic]) -> str:
    """Return the C type of an array's elements.

    Raises:
        UnsupportedError: C99 has none.
    """
    if dtype == np.float16:
        raise UnsupportedError("float16 has no type in C99")
    return STORED.get(dtype.name, f"{dtype.name}_t")


def number(value: float, c_type: str) -> str:
    """Return a literal of a type; floating-point numbers in hexadecimal, which is exact."""
    if c_type in ("float", "double"):
        if not math.isfinite(value):
            raise UnsupportedError(f"the constant {value} has no form in C99 without math.h")
        mantissa, exponent = float(value).hex().split("p")
        text = f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}p{exponent}"
        return f"{text}f" if c_type == "float" else text
    whole = int(value)
    if -(1 << 31) < whole < 1 << 31:
        return str(whole)
    if whole == -(1 << 63):
        return "INT64_MIN"
    return f"INT64_C({whole})"


def array(values: np.ndarray[tuple[int, ...], np.dtype[np.generic]], c_type: str) -> str:
    """Return the lines of an initializer, 24 numbers a line."""
    words = [number(v, c_type) for v in values.reshape(-1).tolist()]
    rows = [", ".join(words[i : i + 24]) for i in range(0, len(words), 24)]
    return ",\n".join(f"    {row}" for row in rows)


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

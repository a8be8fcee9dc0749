"""Numbers in text: consoles, C arrays, tables, and the hexadecimal words of NNIE's simulation."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np

from tflq.analysis.dumps.wanted import Stored
from tflq.errors import InputError
from tflq.graph import Array

_NUMBER = r"[+-]?(?:0[xX][0-9a-fA-F]+|\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|nan|inf)"
_ROW = re.compile(rf"^[\s,;{{}}\[\]()]*(?:{_NUMBER}[uUlLfF]*[\s,;{{}}\[\]()]*)+$")
_TOKEN = re.compile(_NUMBER)
_BRACKETED = re.compile(r"^\s*\[\s*(\d+)\s*\]\s*(?!\s*[-+\d,])(.*)$")
_SAMPLE = re.compile(r"(?:sample|image|frame)\s*[:#_]?\s*(\d+)", re.IGNORECASE)
_DECLARATION = re.compile(r"(u?int(?:8|16|32|64)_t|float|double|(?:un)?signed char)\s+(\w+)\s*\[[^]]*\]\s*=")
_NAME = re.compile(r"[A-Za-z_][\w/;:.]*\w")
_C_TYPES = {"float": "float32", "double": "float64", "signed char": "int8", "unsigned char": "uint8"}
WORD_STEP = 1 / 4096
"""NNIE's words are 20.12 fixed point."""


@dataclass
class _Block:
    """Numbers between two headings."""

    name: str = ""
    alias: str = ""
    dtype: str = ""
    sample: int | None = None
    tokens: list[str] = field(default_factory=list)


def read_words(path: str, content: str, name: str) -> Stored:
    """Read hexadecimal 32-bit words, one a line: two's complement, value / 4096, planar (docs/nnie.md).

    Raises:
        InputError: a line that is no word.
    """
    lines = content.split()
    try:
        words = np.array([int(line, 16) for line in lines], np.uint64)
    except ValueError:
        bad = next(line for line in lines if not re.fullmatch(r"(0[xX])?[0-9a-fA-F]+", line))
        raise InputError(f"{path}: '{bad[:20]}' is no hexadecimal word; each line holds one of 32 bits") from None
    if not words.size or words.max() > 0xFFFFFFFF:
        raise InputError(f"{path}: holds no hexadecimal words of 32 bits")
    real = words.astype(np.uint32).view(np.int32).astype(np.float64) * WORD_STEP
    return Stored(name, real, is_flat=True, channels_first=True, step=WORD_STEP)


def read_table(path: str, content: str, name: str) -> Stored:
    """Read rows of numbers, one sample a row.

    Raises:
        InputError: rows of different lengths, or no numbers.
    """
    rows = [_TOKEN.findall(line) for line in content.splitlines() if _ROW.match(line)]
    if not rows or len({len(row) for row in rows}) > 1:
        found = "rows of different lengths" if rows else "no numbers"
        raise InputError(f"{path}: has {found}; a table holds one sample in each row")
    return Stored(name, np.stack([_numbers(row) for row in rows]), is_flat=True)


def read_blocks(path: str, content: str, name: str) -> list[Stored]:
    """Read the blocks of numbers of a log or C file; headings name them.

    A heading is a line with words: "[4] CONV_2D ..." is number 4, "static const int8_t conv_4[n] = {" is conv_4;
    "sample 1" in a heading holds for the blocks behind it, and the words of a comment are a block's second name.

    Raises:
        InputError: no numbers.
    """
    blocks = [_Block()]
    for line in content.splitlines():
        if _ROW.match(line) and not re.fullmatch(r"\s*\[\s*\d+\s*\]\s*", line):
            blocks[-1].tokens += _TOKEN.findall(line)
        elif re.search(r"\w", line):
            if blocks[-1].tokens:
                blocks.append(_Block(sample=blocks[-1].sample))
            _heading(blocks[-1], line)
    found = [
        Stored(
            b.name or b.alias or name,
            _typed(b),
            b.alias if b.name else "",
            is_raw=not b.dtype and _is_bytes(b.tokens),
            is_flat=True,
            may_be_short=True,
            sample=b.sample,
        )
        for b in blocks
        if b.tokens
    ]
    if not found:
        raise InputError(f"{path}: holds no numbers")
    return found


def _heading(block: _Block, line: str) -> None:
    sample = _SAMPLE.search(line)
    if sample is not None:
        block.sample = int(sample.group(1))
    declared = _DECLARATION.search(line)
    if declared is not None:
        kind = declared.group(1)
        block.dtype, block.name = _C_TYPES.get(kind, kind.removesuffix("_t")), declared.group(2)
        rest = line[declared.end() :]
        block.tokens += _TOKEN.findall(rest) if _ROW.match(rest.strip(" {};") or "x") else []
        return
    numbered = _BRACKETED.match(line)
    if numbered is not None:
        block.name = numbered.group(1)
        return
    named = _NAME.search(line if sample is None else line[: sample.start()])
    if named is not None and not block.alias:
        block.alias = named.group(0)


def _is_bytes(tokens: list[str]) -> bool:
    return all(t[:2] in ("0x", "0X") and len(t) <= 4 for t in tokens)


def _typed(block: _Block) -> Array:
    if block.dtype:
        wide = _numbers(block.tokens)
        return wide.astype(block.dtype) if wide.dtype.kind == "f" else wide.astype(np.int64).astype(block.dtype)
    if _is_bytes(block.tokens):
        return np.array([int(t, 16) for t in block.tokens], np.uint8)
    return _numbers(block.tokens)


def _numbers(tokens: list[str]) -> Array:
    """Return int64[n] where all are whole as written, else float64[n]."""
    try:
        return np.array([int(t, 0) if t[:2] in ("0x", "0X") else int(t) for t in tokens], np.int64)
    except (ValueError, OverflowError):
        return np.array([float(t) for t in tokens], np.float64)

"""The binary as C: a source file with one aligned array for each entry, and its header."""

from __future__ import annotations

import numpy as np

from tflq.converters.gap9.emit.hardware import ALIGNMENT, HEADER, Entry

_GUARD = "TFLQ_GAP9_CONSTANTS_H"
_PER_LINE = 16
_SIZES = {"int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8}


def c_source(content: bytes, entries: tuple[Entry, ...]) -> bytes:
    """Return the arrays; bits and bytes as uint8_t, numbers in their own type."""
    lines = ["/* Written by tflq. */", f'#include "{HEADER}"']
    for entry in entries:
        data = content[entry.offset : entry.offset + entry.size_bytes]
        lines += ["", f"{_declaration(entry)} __attribute__((aligned({ALIGNMENT}))) = {{", *_values(entry, data), "};"]
    return ("\n".join(lines) + "\n").encode()


def c_header(entries: tuple[Entry, ...]) -> bytes:
    """Return the declarations, each with its layout."""
    lines = ["/* Written by tflq. */", f"#ifndef {_GUARD}", f"#define {_GUARD}", "", "#include <stdint.h>", ""]
    for entry in entries:
        shape = "x".join(map(str, entry.shape)) or "scalar"
        lines.append(f"extern {_declaration(entry)}; /* {entry.kind} {shape}, {entry.layout} */")
    return ("\n".join([*lines, "", f"#endif /* {_GUARD} */"]) + "\n").encode()


def _element(entry: Entry) -> str:
    return entry.element if entry.element in _SIZES else "uint8"


def _declaration(entry: Entry) -> str:
    element = _element(entry)
    # C has no arrays of length 0.
    return f"const {element}_t {entry.name}[{max(1, entry.size_bytes // _SIZES[element])}]"


def _values(entry: Entry, data: bytes) -> list[str]:
    numbers = np.frombuffer(data, np.dtype(_element(entry)).newbyteorder("<")).tolist() or [0]
    return [
        "    " + ", ".join(_literal(n, _element(entry)) for n in numbers[i : i + _PER_LINE]) + ","
        for i in range(0, len(numbers), _PER_LINE)
    ]


def _literal(number: int, element: str) -> str:
    # -2147483648 is an expression of an unsigned literal in C89; hexadecimal avoids the question.
    return f"(int32_t)0x{number & 0xFFFFFFFF:08x}" if element == "int32" and number == -(1 << 31) else str(number)

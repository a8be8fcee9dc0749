"""Vectors as C99: one header and one source file a layer."""

from __future__ import annotations

import numpy as np

from tflq.analysis.vectors.collect import LayerVectors, Vector
from tflq.errors import UnsupportedError
from tflq.graph import Array

_PER_LINE = 12


def header_of(layer: LayerVectors) -> str:
    """Return declarations, with the shape of each array in a comment."""
    guard = f"{layer.identifier.upper()}_VECTORS_H"
    lines = [
        f"/* {layer.operator}, layer {layer.index}; axis 0 of inputs and outputs counts the samples. */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        "#include <stdint.h>",
        "",
    ]
    for vector in layer.vectors:
        lines.append(f"/* {vector.role}: {list(vector.values.shape)} */")
        lines.append(f"#define {_name(layer, vector).upper()}_COUNT {vector.values.size}")
        lines.append(f"extern const {_declaration(layer, vector)};")
    return "\n".join([*lines, "", "#endif", ""])


def source_of(layer: LayerVectors) -> str:
    """Return definitions; floating-point numbers are hexadecimal, so that no bit is lost."""
    parts = [f'#include "{layer.identifier}.h"', "#include <math.h>", ""]
    for vector in layer.vectors:
        words = words_of(vector.values)
        rows = [", ".join(words[i : i + _PER_LINE]) for i in range(0, len(words), _PER_LINE)]
        body = ",\n    ".join(rows) or "0"
        parts.append(f"const {_declaration(layer, vector)} = {{\n    {body}\n}};\n")
    return "\n".join(parts)


def words_of(values: Array) -> list[str]:
    """Return each element as a C99 constant."""
    flat = values.reshape(-1)
    if values.dtype.kind in "biu":
        return [_integer(int(v), values.dtype.itemsize) for v in flat]
    return [_real(float(v), values.dtype == np.float64) for v in flat]


def _integer(value: int, size_bytes: int) -> str:
    if size_bytes < 8:
        return "(-2147483647 - 1)" if value == -(1 << 31) else str(value)
    if value == -(1 << 63):
        return "INT64_MIN"
    return f"UINT64_C({value})" if value >= 1 << 63 else f"INT64_C({value})"


def _real(value: float, is_double: bool) -> str:
    if np.isnan(value):
        return "NAN"
    if np.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    return value.hex() + ("" if is_double else "f")


def _declaration(layer: LayerVectors, vector: Vector) -> str:
    return f"{_type(vector.values)} {_name(layer, vector)}[{max(1, vector.values.size)}]"


def _type(values: Array) -> str:
    bits = values.dtype.itemsize * 8
    if values.dtype.kind == "f":
        if bits == 16:
            raise UnsupportedError("float16 has no type in C99; use --vectors npz or hex")
        return "float" if bits == 32 else "double"
    return f"{'int' if values.dtype.kind == 'i' else 'uint'}{bits}_t"


def _name(layer: LayerVectors, vector: Vector) -> str:
    return f"{layer.identifier}_{vector.identifier}"

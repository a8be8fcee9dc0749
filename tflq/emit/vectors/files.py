"""The files of test vectors: one of three formats, an index that says what is where, and a README.

Vectors as C99: one header and one source file a layer.

The README of a folder of test vectors: what the files are, and how a test bench of each kind takes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tflq.emit.archives import npz_bytes
from tflq.emit.vectors.collect import REGISTERS, LayerVectors, Vector
from tflq.errors import UnsupportedError
from tflq.graph import Array
from tflq.quoting import json_text
from tflq.schemas import Json

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


NAME = "README.md"

_ROLES = """Arrays of each layer, by role:

- input, output: [samples, ...], what the layer reads and must write; the last axis is the fastest.
- constant: weights, bias and tables as the graph holds them.
- integers: what the arithmetic decided: multipliers, shifts, folded biases, limits.
- memory: of an accelerator's jobs, below.

index.json has every array's file, type, shape, scale and zero point, and the numbers that are no arrays.
"""

_USES = {
    "hex": """## SystemVerilog

One word a line, two's complement; the first line is a comment with type and shape.

    logic [{bits}:0] wanted [0:{last}];
    initial $readmemh("{file}", wanted);
    // behind the layer: for (int i = 0; i <= {last}; i++) assert (dut.memory[base + i] == wanted[i]);

## cocotb

    words = [int(w, 16) for w in open("{file}") if not w.startswith("//")]
    assert [int(dut.memory[base + i].value) for i in range(len(words))] == words
""",
    "c": """## C

A pair of files a layer; compile the .c beside the test.

    #include "{layer}.h"
    for (int i = 0; i < {upper}_COUNT; i++) {{
        if (result[i] != {array}[i]) {{ printf("element %d\\n", i); return 1; }}
    }}
""",
    "npz": """## Python, cocotb

    import numpy as np
    arrays = np.load("{file}")
    assert (np.asarray(result).reshape(arrays["{name}"][0].shape) == arrays["{name}"][0]).all()
""",
}

_JOBS = """## Jobs of NE16

Layers with ne16_registers: {layers}. A sample runs so, memory counted from address 0:

1. Load ne16_before[sample].
2. For each row of ne16_registers: write its 24 words to the job's registers, in order, trigger, and wait for the end.
3. After job j, where there are several, memory from the output's address (register 2 of the first row) on equals
   ne16_outputs[sample, j].
4. At the end memory equals ne16_after[sample]. What is not written is 0.
"""


def readme_of(layers: Sequence[LayerVectors], kind: str) -> str:
    """Return the text, its examples with the names of the first layer.

    Args:
        layers: that were written, at least one.
        kind: "c", "hex" or "npz".
    """
    layer = layers[0]
    vector = next((v for v in layer.vectors if v.role == "output"), layer.vectors[0])
    array = f"{layer.identifier}_{vector.identifier}"
    use = _USES[kind].format(
        layer=layer.identifier,
        array=array,
        upper=array.upper(),
        name=vector.identifier,
        file=f"{array}.hex" if kind == "hex" else f"{layer.identifier}.npz",
        bits=8 * vector.values.dtype.itemsize - 1,
        last=vector.values.size - 1,
    )
    on_ne16 = [x.identifier for x in layers if any(v.name == REGISTERS for v in x.vectors)]
    jobs = [_JOBS.format(layers=", ".join(on_ne16))] if on_ne16 else []
    return "\n".join(["# Test vectors\n", _ROLES, use, *jobs])


FORMATS = ("c", "hex", "npz")
INDEX = "index.json"


def files_of(layers: Sequence[LayerVectors], kind: str, facts: Mapping[str, Json]) -> dict[str, bytes]:
    """Return file name -> content.

    Args:
        layers: what to write.
        kind: "c", "hex" or "npz".
        facts: what the index says at its top.

    Raises:
        UnsupportedError: a type that the format does not have.
    """
    files: dict[str, bytes] = {}
    for layer in layers:
        if kind == "c":
            files[f"{layer.identifier}.h"] = header_of(layer).encode()
            files[f"{layer.identifier}.c"] = source_of(layer).encode()
        elif kind == "hex":
            files.update({f"{layer.identifier}_{v.identifier}.hex": hex_text(v).encode() for v in layer.vectors})
        else:
            files[f"{layer.identifier}.npz"] = npz_bytes({v.identifier: v.values for v in layer.vectors})
    index: dict[str, Json] = {**facts, "vectors": kind, "layers": [_entry(layer, kind) for layer in layers]}
    files[INDEX] = (json_text(index) + "\n").encode()
    if layers:
        files[NAME] = readme_of(layers, kind).encode()
    return files


def _entry(layer: LayerVectors, kind: str) -> dict[str, Json]:
    return {
        "index": layer.index,
        "name": layer.name,
        "operator": layer.operator,
        "arithmetic": layer.arithmetic,
        "arrays": [_array(layer, vector, kind) for vector in layer.vectors],
        "numbers": layer.numbers,
        "left_out": dict[str, Json](layer.left_out),
    }


def _array(layer: LayerVectors, vector: Vector, kind: str) -> dict[str, Json]:
    files = {
        "c": f"{layer.identifier}.c",
        "hex": f"{layer.identifier}_{vector.identifier}.hex",
        "npz": f"{layer.identifier}.npz",
    }
    affine = vector.quantization
    return {
        "role": vector.role,
        "name": vector.name,
        "identifier": f"{layer.identifier}_{vector.identifier}" if kind == "c" else vector.identifier,
        "file": files[kind],
        "tensor": vector.tensor or None,
        "dtype": str(vector.values.dtype),
        "shape": list(vector.values.shape),
        "sampled": vector.role in ("input", "output", "memory"),
        "scale": None if affine is None else [float(s) for s in affine.scale],
        "zero_point": None if affine is None else [int(z) for z in affine.zero_point],
        "axis": None if affine is None else affine.axis,
    }


def hex_text(vector: Vector) -> str:
    """Return one word a line, the last axis fastest: two's complement, or the IEEE bits of floating-point numbers.

    A word has as many digits as the element has half bytes; the first line is a comment with type and shape.
    """
    values = np.ascontiguousarray(vector.values).reshape(-1)
    size_bytes = values.dtype.itemsize
    words = values.view(f"u{size_bytes}")
    head = f"// {vector.role} {vector.name}: {values.dtype}{list(vector.values.shape)}"
    return "\n".join([head, *(f"{int(word):0{2 * size_bytes}x}" for word in words), ""])

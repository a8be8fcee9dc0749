"""The files of test vectors: one of three formats, an index that says what is where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tflq.analysis.archives import npz_bytes
from tflq.analysis.vectors import readme
from tflq.analysis.vectors.c_arrays import header_of, source_of
from tflq.analysis.vectors.collect import LayerVectors, Vector
from tflq.quoting import json_text
from tflq.schemas import Json

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
        files[readme.NAME] = readme.readme_of(layers, kind).encode()
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
    affine = vector.quantisation
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

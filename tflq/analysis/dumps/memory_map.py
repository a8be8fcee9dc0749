"""A memory image: raw bytes of each sample, and a map that says where the tensors lie in them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np

from tflq.analysis.dumps.options import TYPES
from tflq.errors import InputError
from tflq.files import read_bytes
from tflq.graph import Array

MAP = '{"sample_bytes": N, "tensors": {NAME: {"offset": N, "dtype": "int8", "shape": [...]}}}'

_Entry = tuple[int, np.dtype[np.generic], tuple[int, ...]]


def is_map(path: Path) -> bool:
    """Whether a file is a map."""
    if not path.is_file():
        return False
    try:
        _read_map(str(path))
    except InputError:
        return False
    return True


def read_mapped(path: str | os.PathLike[str], map_path: str) -> dict[str, Array]:
    """Read the tensors of a memory image: dtype[S, *shape] by name.

    Raises:
        InputError: a map that is none, or that does not fit the bytes.
    """
    content = np.frombuffer(bytes(read_bytes(path)), np.uint8)
    sample_bytes, entries = _read_map(map_path)
    stride = content.size if sample_bytes is None else sample_bytes
    if stride < 1 or content.size % stride or not content.size:
        raise InputError(f"{path}: has {content.size} bytes, which is no multiple of the {stride} bytes of one sample")
    rows = content.reshape(-1, stride)
    arrays: dict[str, Array] = {}
    for name, (offset, dtype, shape) in entries.items():
        end = offset + dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        if end > stride:
            raise InputError(f"{map_path}: '{name}' ends at byte {end}, a sample of {path} has {stride} bytes")
        arrays[name] = np.ascontiguousarray(rows[:, offset:end]).view(dtype).reshape(len(rows), *shape)
    return arrays


def _read_map(path: str) -> tuple[int | None, dict[str, _Entry]]:
    try:
        found = json.loads(bytes(read_bytes(path)))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(f"{path}: is no JSON: {error}") from None
    tensors = found.get("tensors") if isinstance(found, dict) else None
    stride = found.get("sample_bytes") if isinstance(found, dict) else None
    if not isinstance(tensors, dict) or not tensors or not (stride is None or _is_size(stride)):
        raise InputError(f"{path}: is no map of a dump; it needs {MAP}")
    return stride, {name: _entry(path, name, entry) for name, entry in tensors.items()}


def _entry(path: str, name: str, entry: object) -> _Entry:
    values = entry if isinstance(entry, dict) else {}
    offset, dtype, shape = values.get("offset"), values.get("dtype"), values.get("shape")
    if not _is_size(offset) or dtype not in TYPES or not isinstance(shape, list) or not all(map(_is_size, shape)):
        raise InputError(
            f"{path}: '{name}' needs an offset in bytes, a shape and a dtype of {', '.join(TYPES)}; found {entry!r}"
        )
    return int(str(offset)), np.dtype(str(dtype)).newbyteorder("<"), tuple(int(n) for n in shape)


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0

"""Element types of the IR: their names in data and in ports, and the numpy type of their bytes."""

from __future__ import annotations

import numpy as np

from tflq.graph import Array

PRECISIONS = {
    "f32": "FP32",
    "f16": "FP16",
    "i4": "I4",
    "u4": "U4",
    "i8": "I8",
    "u8": "U8",
    "i32": "I32",
    "i64": "I64",
    "boolean": "BOOL",
}
"""Name in `element_type` -> name in `precision`."""

_STORAGE = {
    "f32": "<f4",
    "f16": "<f2",
    "i8": "<i1",
    "u8": "<u1",
    "i32": "<i4",
    "i64": "<i8",
    "boolean": "<u1",
}
_NIBBLES = {"i4": "<i1", "u4": "<u1"}


def is_known(name: str) -> bool:
    """Whether the bytes of an element type are known."""
    return name in PRECISIONS


def size_bytes(name: str, count: int) -> int:
    """Return the bytes of `count` elements; 4-bit ones are packed two in a byte."""
    return (count + 1) // 2 if name in _NIBBLES else count * np.dtype(_STORAGE[name]).itemsize


def element_type(array: Array) -> str:
    """Return the element type of an array: f32, i8, u8, i32, i64 or boolean."""
    if array.dtype == np.bool_:
        return "boolean"
    found = {np.dtype(code).newbyteorder("="): name for name, code in _STORAGE.items() if name != "boolean"}
    return found[array.dtype]


def to_bytes(name: str, array: Array) -> bytes:
    """Return an array's bytes; of 4-bit elements the first stands in the low half of a byte."""
    if name not in _NIBBLES:
        return bytes(array.astype(_STORAGE[name]).tobytes())
    flat = array.reshape(-1).astype(np.uint8) & 15
    even = np.concatenate([flat, np.zeros(flat.size % 2, np.uint8)])
    packed: bytes = (even[::2] | (even[1::2] << 4)).astype(np.uint8).tobytes()
    return packed


def from_bytes(name: str, data: bytes | memoryview, shape: tuple[int, ...]) -> Array:
    """Return the array that bytes of the right length hold, read-only."""
    count = int(np.prod(shape, dtype=np.int64))
    if name in _NIBBLES:
        packed = np.frombuffer(data, np.uint8)
        flat = np.stack([packed & 15, packed >> 4], axis=1).reshape(-1)[:count]
        flat = ((flat ^ 8).astype(np.int8) - 8) if name == "i4" else flat
        values: Array = flat.astype(_NIBBLES[name]).reshape(shape)
    else:
        read = np.frombuffer(data, _STORAGE[name], count).reshape(shape)
        values = read.astype(bool) if name == "boolean" else read
    values.setflags(write=False)
    return values

"""The scalar types of the flatbuffer format: size, struct code, numpy type and range of each."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True, eq=False)
class Scalar:
    """One scalar type, little-endian in the file.

    Attributes:
        name: Name of the type; with "Flags" added, the runtime's name for its packing.
        codec: Reads and writes one value.
        size: Bytes, which is also the alignment.
        dtype: The numpy type of a vector of it.
        low: Least value, or None for floats.
        high: Greatest value, or None for floats.
    """

    name: str
    codec: struct.Struct
    size: int
    dtype: np.dtype[np.generic]
    low: int | None
    high: int | None


def _integer(name: str, code: str, size: int) -> Scalar:
    signed = code.islower()
    low, high = (-(1 << (8 * size - 1)), (1 << (8 * size - 1)) - 1) if signed else (0, (1 << (8 * size)) - 1)
    return Scalar(name, struct.Struct("<" + code), size, np.dtype(f"<{'i' if signed else 'u'}{size}"), low, high)


def _real(name: str, code: str, size: int) -> Scalar:
    return Scalar(name, struct.Struct("<" + code), size, np.dtype(f"<f{size}"), None, None)


BOOL = Scalar("Bool", struct.Struct("<B"), 1, np.dtype(np.bool_), 0, 1)
INT8 = _integer("Int8", "b", 1)
UINT8 = _integer("Uint8", "B", 1)
INT16 = _integer("Int16", "h", 2)
UINT16 = _integer("Uint16", "H", 2)
INT32 = _integer("Int32", "i", 4)
UINT32 = _integer("Uint32", "I", 4)
INT64 = _integer("Int64", "q", 8)
UINT64 = _integer("Uint64", "Q", 8)
FLOAT32 = _real("Float32", "f", 4)
FLOAT64 = _real("Float64", "d", 8)

ALL = (BOOL, INT8, UINT8, INT16, UINT16, INT32, UINT32, INT64, UINT64, FLOAT32, FLOAT64)
OF_DTYPE = {scalar.dtype: scalar for scalar in ALL}

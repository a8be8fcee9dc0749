"""Names of array types for all packages, and exact equality of values that contain arrays."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import fields, is_dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.generic]
Singles = NDArray[np.float32]
Doubles = NDArray[np.float64]
Reals = NDArray[np.floating]
Integers = NDArray[np.int64]


def is_same(a: object, b: object) -> bool:
    """Compare two values recursively: numbers and arrays by type, shape and bits (0 differs from -0)."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return _same_array(a, b)
    if is_dataclass(a) and is_dataclass(b):
        return all(is_same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a) if f.compare)
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(is_same(a[key], b[key]) for key in a)
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return len(a) == len(b) and all(is_same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) and isinstance(b, float):
        return struct.pack("<d", a) == struct.pack("<d", b)
    return bool(a == b)


def _same_array(a: np.ndarray, b: np.ndarray) -> bool:
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return bool(np.array_equal(a, b)) if a.dtype == object else a.tobytes() == b.tobytes()

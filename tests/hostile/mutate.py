"""Damages .tflite files: bytes without regard for the format, and values within their tables. Deterministic."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from enum import IntEnum

import numpy as np

from tflq.errors import TflqError
from tflq.schemas import tflite as schema
from tflq.schemas.flatbuffer import Table

Rng = np.random.Generator
_WORDS = (0, 1, 2, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFE, 0x40000000)
_INTEGERS = (0, 1, -1, 2, 3, 5, 7, 100, 255, 256, -128, 1 << 15, 1 << 16, 1 << 20, (1 << 31) - 1, -(1 << 31))
_REALS = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, 1e-38, 3e38, 1e-6, 1e6, 0.1)


def mutation(content: bytes, other: bytes, seed: int) -> tuple[str, bytes]:
    """Return how a file was damaged, in a word, and the damaged file; `other` lends parts to splices."""
    rng = np.random.default_rng(seed)
    if rng.random() < 0.6:
        return "values", _values(content, rng)
    name = str(rng.choice(list(_BYTES)))
    return name, _BYTES[name](bytearray(content), other, rng)


def _flip(data: bytearray, _other: bytes, rng: Rng) -> bytes:
    for _ in range(int(rng.integers(1, 9))):
        data[_place(len(data), rng)] ^= 1 << int(rng.integers(8))
    return bytes(data)


def _word(data: bytearray, _other: bytes, rng: Rng) -> bytes:
    for _ in range(int(rng.integers(1, 4))):
        at = _place(len(data) - 4, rng) & ~3
        data[at : at + 4] = int(rng.choice(_WORDS)).to_bytes(4, "little")
    return bytes(data)


def _cut(data: bytearray, _other: bytes, rng: Rng) -> bytes:
    return bytes(data[: _place(len(data), rng)])


def _splice(data: bytearray, other: bytes, rng: Rng) -> bytes:
    size = int(rng.integers(1, 4096))
    source, at = _place(len(other), rng), _place(len(data), rng)
    data[at : at + size] = other[source : source + size]
    return bytes(data)


def _shift(data: bytearray, _other: bytes, rng: Rng) -> bytes:
    at, size = _place(len(data), rng), int(rng.integers(1, 65))
    if rng.random() < 0.5:
        del data[at : at + size]
    else:
        data[at:at] = rng.bytes(size)
    return bytes(data)


_BYTES: dict[str, Callable[[bytearray, bytes, Rng], bytes]] = {
    "flips": _flip,
    "words": _word,
    "cut": _cut,
    "splice": _splice,
    "shift": _shift,
}


def _place(size: int, rng: Rng) -> int:
    """Anywhere; half of the time near an end, where a file has its tables and not its weights."""
    near = min(size, 6000)
    if rng.random() < 0.5:
        return int(rng.integers(near)) if rng.random() < 0.5 else size - 1 - int(rng.integers(near))
    return int(rng.integers(size))


def _values(content: bytes, rng: Rng) -> bytes:
    """Change one to three values in the tables; what cannot be written any more is drawn again."""
    table = schema.decode_model(content, "model")
    for _ in range(20):
        changed = deepcopy(table)
        try:
            for _ in range(int(rng.integers(1, 4))):
                _change(changed, rng)
            return schema.encode_model(changed)
        except (TflqError, OverflowError, ValueError):
            continue
    return content


def _change(model: Table, rng: Rng) -> None:
    spots: dict[tuple[str, str], list[Table]] = {}
    for table in _tables(model):
        for name in table.present():
            spots.setdefault((type(table).__name__, name), []).append(table)
    names = list(spots)
    kind = names[int(rng.integers(len(names)))]
    table = spots[kind][int(rng.integers(len(spots[kind])))]
    setattr(table, kind[1], _other_value(getattr(table, kind[1]), rng))


def _tables(table: Table) -> Iterator[Table]:
    yield table
    for value in table.present().values():
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, Table):
                yield from _tables(part)


def _other_value(value: object, rng: Rng) -> object:
    if isinstance(value, bool):
        return not value
    if isinstance(value, IntEnum):
        members = list(type(value))
        return members[int(rng.integers(len(members)))]
    if isinstance(value, int):
        return int(rng.choice(_INTEGERS)) if rng.random() < 0.5 else value + int(rng.integers(-3, 4))
    if isinstance(value, float):
        return float(rng.choice(_REALS))
    if isinstance(value, np.ndarray):
        return _other_array(value, rng)
    if isinstance(value, list):
        return _other_list(value, rng)
    return None


def _other_array(value: np.ndarray, rng: Rng) -> np.ndarray:
    kind = rng.random()
    if kind < 0.15 or value.size == 0:
        return np.append(value, value[-1:] if value.size else np.zeros(1, value.dtype))
    if kind < 0.3:
        return value[: int(rng.integers(value.size))]
    changed = value.copy()
    at = int(rng.integers(value.size))
    if value.dtype.kind == "f":
        changed[at] = rng.choice(_REALS)
    elif kind < 0.65:
        low, high = np.iinfo(value.dtype).min, np.iinfo(value.dtype).max
        changed[at] = min(max(int(rng.choice(_INTEGERS)), low), high)
    else:
        with np.errstate(over="ignore"):
            changed[at] += np.array(rng.integers(-2, 3)).astype(value.dtype)
    return changed


def _other_list(value: list[object], rng: Rng) -> list[object]:
    if not value:
        return value
    changed = list(value)
    one, two = (int(rng.integers(len(changed))) for _ in range(2))
    kind = rng.random()
    if kind < 0.4:
        changed[one], changed[two] = changed[two], changed[one]
    elif kind < 0.7:
        del changed[one]
    else:
        changed.insert(two, deepcopy(changed[one]))
    return changed

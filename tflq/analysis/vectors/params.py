"""What `lower` decided for a node, as named arrays and numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum

import numpy as np

from tflq.graph import Array
from tflq.schemas import Json

_OUR_OWN = ("tflq.interpreter.accumulate.", "tflq.interpreter.numerics.requantise")
"""Modules whose data only make tflq fast: prepared weights, proven float maps."""
_WINDOW = "tflq.interpreter.accumulate.window"


@dataclass
class Integers:
    """A node's integers by dotted name.

    Attributes:
        arrays: multipliers, shifts, biases, tables; int64 as int32 where all values fit.
        numbers: zero points, bounds, strides, words.
    """

    arrays: dict[str, Array] = field(default_factory=dict)
    numbers: dict[str, Json] = field(default_factory=dict)


def integers_of(value: object) -> Integers:
    """Return the fields of a node's dataclass; what stands in several places is named where it comes first.

    A node that is lowered at run time has its reason only.
    """
    found = Integers()
    seen: dict[int, object] = {}  # keeps the objects alive, so that no address is used twice
    for name, item in _walk("", value):
        if isinstance(item, np.ndarray):
            if item.dtype != object and id(item) not in seen:
                seen[id(item)] = item
                found.arrays[name] = _narrow(item)
        else:
            found.numbers[name] = _plain(item)
    return found


def _walk(prefix: str, value: object, seen: frozenset[int] = frozenset()) -> Iterator[tuple[str, object]]:
    known = set(seen)
    for name, item in _parts(value):
        path = f"{prefix}.{name}" if prefix else name
        if _is_record(item) or _is_list_of_records(item):
            if id(item) not in known and not _is_our_own(item):
                known.add(id(item))
                yield from _walk(path, item, frozenset(known))
        elif item is not None:
            yield path, item


def _parts(value: object) -> list[tuple[str, object]]:
    """Return the fields of a dataclass, or the items of a tuple by their number."""
    if isinstance(value, tuple):
        return [(str(i), item) for i, item in enumerate(value)]
    if is_dataclass(value) and not isinstance(value, type):
        return [(f.name, getattr(value, f.name)) for f in fields(value)]
    return []


def _is_record(item: object) -> bool:
    return is_dataclass(item) and not isinstance(item, type)


def _is_list_of_records(item: object) -> bool:
    return isinstance(item, tuple) and any(_is_record(i) or isinstance(i, (np.ndarray, tuple)) for i in item)


def _is_our_own(item: object) -> bool:
    module = type(item).__module__
    return module.startswith(_OUR_OWN) and module != _WINDOW


def _narrow(array: Array) -> Array:
    if array.dtype != np.int64 or (array.size and (array.min() < -(1 << 31) or array.max() >= 1 << 31)):
        return array
    return np.asarray(array.astype(np.int32))


def _plain(value: object) -> Json:
    if isinstance(value, Enum):
        return str(value.value) if isinstance(value.value, str) else value.name.lower()
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else str(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return str(value)

"""Where the integers of two lowered nodes differ: weights, biases, multipliers, by channel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass

import numpy as np

from tflq.graph import Array
from tflq.graph.equality import same

_DERIVED = frozenset({"step_map", "prepared", "table", "pairs", "first", "second", "exponentials", "addends"})
"""Fields that follow from others."""
_FOLDED = ("Rescale", "Rescaling")
"""Classes whose field `bias` holds the zero points too."""
_ORDER = ("weights", "bias", "multiplier", "shift")


@dataclass(frozen=True)
class IntegerDifference:
    """One field whose values differ.

    Attributes:
        name: of the field: "weights", "multiplier", "input_zero_point".
        channel: of the first axis where it differs most; None for single numbers.
        channels: number of channels that differ.
        differing: number of elements that differ.
        first: value of the first side where it differs most.
        second: value of the second side.
    """

    name: str
    channel: int | None
    channels: int
    differing: int
    first: str
    second: str

    @property
    def words(self) -> str:
        """As a report says it."""
        if self.channel is None:
            return f"{self.name} is {self.first}, reference {self.second}"
        more = f", {self.channels} channels in all" if self.channels > 1 else ""
        many = f" in {self.differing} elements" if self.differing > 1 else ""
        return f"{self.name} of channel {self.channel} differs{many}: {self.first}, reference {self.second}{more}"


def integer_differences(first: object, second: object) -> tuple[IntegerDifference, ...]:
    """Compare the integers of two nodes, field by field; () where they are of different kinds.

    Weights come first, then bias, multiplier, shift, and the rest in order of their fields.
    """
    if type(first) is not type(second) or not _of_one_kind(first, second):
        return ()
    found: dict[str, IntegerDifference] = {}
    for difference in _walk("", first, second):
        found.setdefault(difference.name, difference)
    order = {name: i for i, name in enumerate(_ORDER)}
    return tuple(sorted(found.values(), key=lambda d: order.get(d.name, len(order))))


def array_difference(name: str, first: Array, second: Array, axis: int = 0) -> IntegerDifference | None:
    """Compare two arrays; None where they are equal.

    Args:
        name: for the report.
        first: T[*shape].
        second: T[*shape].
        axis: of the channels.
    """
    if first.shape != second.shape:
        return IntegerDifference(name, None, 0, 0, f"of shape {list(first.shape)}", f"{list(second.shape)}")
    unequal = np.asarray(first != second, bool)
    if first.dtype.kind == "f" and second.dtype.kind == "f":
        unequal &= ~(np.isnan(first) & np.isnan(second))
    if not unequal.any():
        return None
    rows = np.moveaxis(unequal, axis, 0).reshape(unequal.shape[axis], -1) if unequal.ndim else unequal.reshape(1, 1)
    numbers = first.dtype.kind in "fiub" and second.dtype.kind in "fiub"
    distance = np.abs(first.astype(np.float64) - second.astype(np.float64)) if numbers else unequal.astype(np.float64)
    distance = np.where(unequal, np.nan_to_num(distance, nan=np.inf), -1.0)
    place = tuple(int(i) for i in np.unravel_index(int(np.argmax(distance)), unequal.shape))
    channel = place[axis] if place and unequal.shape[axis] > 1 else None
    return IntegerDifference(
        name,
        channel,
        int(np.count_nonzero(rows.any(axis=1))),
        int(np.count_nonzero(unequal)),
        str(first[place]),
        str(second[place]),
    )


def _of_one_kind(first: object, second: object) -> bool:
    """Whether both are of one class, and so is what they hold: a kernel of several arithmetics holds a rule of each."""
    if not (is_dataclass(first) and is_dataclass(second)):
        return True
    names = [f.name for f in fields(first)]
    return type(first) is type(second) and all(_of_one_kind(getattr(first, n), getattr(second, n)) for n in names)


def _walk(name: str, first: object, second: object) -> Iterator[IntegerDifference]:
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        found = array_difference(name, first, second)
        if found is not None:
            yield found
    elif is_dataclass(first) and type(first) is type(second):
        for f in fields(first):
            if f.name not in _DERIVED:
                folded = f.name == "bias" and type(first).__name__ in _FOLDED
                yield from _walk("folded bias" if folded else f.name, getattr(first, f.name), getattr(second, f.name))
    elif isinstance(first, tuple) and isinstance(second, tuple) and len(first) == len(second):
        for i, (a, b) in enumerate(zip(first, second, strict=True)):
            yield from _walk(f"{name}[{i}]", a, b)
    elif not same(first, second):
        yield IntegerDifference(name, None, 0, 1, str(first), str(second))

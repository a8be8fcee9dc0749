"""Comparison of arrays: bit for bit, and floats in units in the last place (ULP)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.graph import Array

_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


@dataclass(frozen=True)
class FirstDifference:
    """The first element that differs, in order of samples and then of C order within the sample.

    Attributes:
        sample: number of the sample.
        index: position within the sample.
        found: Actual value, as text that Python reads back.
        expected: Expected value.
    """

    sample: int
    index: tuple[int, ...]
    found: str
    expected: str


@dataclass(frozen=True)
class Difference:
    """Difference between an array and its expected value.

    Attributes:
        elements: number of elements compared.
        differing: number of elements with different bits; NaN equals any NaN, -0.0 differs from 0.0.
        largest: largest absolute difference, in float64; inf if NaN or infinity meets another number; 0 for strings.
        first: the first element that differs.
        mismatch: Description of different shapes or types; then all elements count as differing.
    """

    elements: int
    differing: int
    largest: float = 0.0
    first: FirstDifference | None = None
    mismatch: str | None = None

    @property
    def is_equal(self) -> bool:
        """Whether nothing differs."""
        return self.differing == 0 and self.mismatch is None

    def __add__(self, later: Difference) -> Difference:
        """Join the differences of two runs of samples, this one's first."""
        return Difference(
            self.elements + later.elements,
            self.differing + later.differing,
            max(self.largest, later.largest),
            self.first or later.first,
            self.mismatch or later.mismatch,
        )


NO_ELEMENTS = Difference(0, 0)


def compare(found: Array, expected: Array, first_sample: int = 0) -> Difference:
    """Compare two arrays of samples bit for bit.

    Args:
        found: dtype[S, *shape].
        expected: dtype[S, *shape].
        first_sample: number of the first sample, for the report.
    """
    if found.shape != expected.shape or found.dtype != expected.dtype:
        text = f"{found.dtype}{list(found.shape)} against {expected.dtype}{list(expected.shape)}"
        return Difference(int(expected.size), int(expected.size), float("inf"), None, text)
    unequal = differing(found, expected)
    count = int(np.count_nonzero(unequal))
    if not count:
        return Difference(int(expected.size), 0)
    place = tuple(int(i) for i in np.unravel_index(int(np.argmax(unequal)), unequal.shape))
    first = FirstDifference(
        first_sample + place[0] if place else first_sample, place[1:], _text(found[place]), _text(expected[place])
    )
    return Difference(int(expected.size), count, largest_difference(found[unequal], expected[unequal]), first)


def differing(found: Array, expected: Array) -> NDArray[np.bool_]:
    """Mark the elements with different bits: bool[shape] of two arrays of the same shape and dtype."""
    if found.dtype.kind not in "fc":
        return np.asarray(found != expected, bool)
    if found.dtype.kind == "c":
        return differing(found.real, expected.real) | differing(found.imag, expected.imag)
    bits = _UNSIGNED[found.dtype.itemsize]
    unequal = np.ascontiguousarray(found).view(bits) != np.ascontiguousarray(expected).view(bits)
    if unequal.any():
        unequal &= ~(np.isnan(found) & np.isnan(expected))
    return np.asarray(unequal.reshape(found.shape), bool)


def largest_difference(found: Array, expected: Array) -> float:
    """Return max |found - expected|; inf if one is NaN or infinite and the other is not equal; 0 for strings.

    Integers of up to 53 bits are exact; float64 rounds the difference of wider ones.
    """
    if found.dtype.kind in "OSU" or not found.size:
        return 0.0
    kind = np.complex128 if found.dtype.kind == "c" else np.float64
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.abs(found.astype(kind) - expected.astype(kind))
    both_nan_or_equal = ~differing(found, expected)
    distance[both_nan_or_equal] = 0.0
    return float(np.where(np.isnan(distance), np.inf, distance).max())


def merge(first: dict[int, Difference], later: dict[int, Difference]) -> dict[int, Difference]:
    """Join two sets of differences by key."""
    return {key: first.get(key, NO_ELEMENTS) + later.get(key, NO_ELEMENTS) for key in {**first, **later}}


def _text(value: object) -> str:
    return repr(value.item() if isinstance(value, np.generic) else value)


def distance(ours: Array, theirs: Array) -> NDArray[np.int64]:
    """Return the numbers of their type between floats of equal type: int64[shape].

    0 for two NaN, the largest integer for one.
    """
    width = np.dtype(f"i{ours.dtype.itemsize}")
    low = np.iinfo(width).min
    order = [np.where(raw < 0, low - raw.astype(np.int64), raw) for raw in (ours.view(width), theirs.view(width))]
    one_nan = np.isnan(ours) != np.isnan(theirs)
    both_nan = np.isnan(ours) & np.isnan(theirs)
    apart = np.abs(order[0].astype(np.int64) - order[1].astype(np.int64))
    return np.asarray(np.where(both_nan, 0, np.where(one_nan, np.iinfo(np.int64).max, apart)))


def distance_in_units(ours: Array, theirs: Array, unit: Array) -> NDArray[np.float64]:
    """Return |ours - theirs| / unit; 0 if they are equal or both NaN, inf if only one is NaN."""
    same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
    with np.errstate(all="ignore"):
        apart = np.abs(ours.astype(np.float64) - theirs.astype(np.float64)) / unit.astype(np.float64)
    return np.asarray(np.where(same, 0.0, np.where(np.isnan(apart), np.inf, apart)))

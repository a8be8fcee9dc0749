"""The place of a difference: the samples, rows, columns and channels in which two results of a layer differ.

The description uses the two arrays only. It is true for every dump and needs no hypothesis.

An axis of K indices of which k contain a difference is named only if the concentration is not random: n elements
that fall on indices at random leave K - k of them empty with probability at most P = choose(K, k) * (k / K)^n (K in
place of choose(K, k) for a contiguous range). The limit is P < 1e-3. Example: 6 differing elements, all in column 0
of 8: P = 3e-5, so the column is named. 5 elements in 3 of 22 channels: P = 1540 * (3/22)^5 = 0.07, so the channels
are not named.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import lgamma, log, log2, log10

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]
Indices = NDArray[np.intp]

CHANCE = -3.0
"""Decimal logarithm of the largest probability P at which an axis is named."""
GROUPS = (32, 16, 8, 4)
"""Numbers of channels that hardware computes together."""
_SPREAD = 0.05
"""Share of differing elements below which a difference without a named axis is scattered."""
_PERIODIC = 0.98
_MOST_RANGES = 8
_NAMES = {2: ("sample", "channel"), 3: ("sample", "position", "channel"), 4: ("sample", "row", "column", "channel")}


@dataclass(frozen=True, eq=False)
class Part:
    """An axis on which only some indices contain differences.

    Attributes:
        axis: Number of the axis in the array.
        name: Singular noun: "sample", "row", "column", "channel".
        size: Number of indices K.
        indices: The k indices with differences, ascending.
        inside: Share of differing elements at these indices, 0 to 1.
    """

    axis: int
    name: str
    size: int
    indices: Indices
    inside: float

    @property
    def is_range(self) -> bool:
        """Whether the indices are contiguous."""
        return int(self.indices[-1] - self.indices[0]) + 1 == len(self.indices)

    @property
    def bits(self) -> float:
        """Bits that name the indices among all subsets of their kind."""
        return log2(self.size) * (2 if len(self.indices) > 1 else 1) if self.is_range else _log2_ways(self)

    @property
    def words(self) -> str:
        """The indices, then the group or period that they form."""
        missing = np.setdiff1d(np.arange(self.size), self.indices)
        if len(missing) <= 4 and len(missing) < len(self.indices) and not self.is_range:
            text = f"all {self.name}s except {list_ranges(missing)} of {self.size}"
        else:
            text = f"{self.short} of {self.size}"
        return f"{text} ({self.inside:.0%} of their elements){self._pattern()}"

    @property
    def short(self) -> str:
        """The name with the indices: "rows 0, 3..5"."""
        return f"{self.name}{'s' * (len(self.indices) > 1)} {list_ranges(self.indices)}"

    def spread(self, shape: Sequence[int]) -> Mask:
        """Return the elements at these indices, bool[*shape]."""
        sizes = [1] * len(shape)
        sizes[self.axis] = -1
        return np.broadcast_to(self.mask.reshape(sizes), shape)

    def _pattern(self) -> str:
        first, last = int(self.indices[0]), int(self.indices[-1])
        if self.name == "channel" and self.is_range:
            for group in GROUPS:
                tail = self.size // group * group
                if 0 < tail < self.size and first == tail and last == self.size - 1:
                    return f", the tail after the last whole group of {group}"
            for group in GROUPS:
                if first % group == 0 and (last + 1) % group == 0 and len(self.indices) < self.size:
                    count = len(self.indices) // group
                    return f", {count} whole group{'s' * (count > 1)} of {group}"
        period = find_period(self.mask)
        if period is None:
            return ""
        return f", {self.name}s {list_ranges(period[1])} of each {period[0]}"

    @cached_property
    def mask(self) -> Mask:
        """Indices with differences, bool[K]."""
        mask = np.zeros(self.size, bool)
        mask[self.indices] = True
        return mask


@dataclass(frozen=True, eq=False)
class Place:
    """The description of the elements that differ.

    Attributes:
        count: Number of differing elements.
        elements: Number of elements.
        parts: Axes on which only some indices contain differences.
        whole: Names of the axes on which every index contains one.
        scattered: Names of the axes with a random concentration.
        first: Flat index of the first element of a sample that differs in any sample.
        last: Flat index of the last one.
        sample_size: Number of elements of a sample.
        itemsize: Bytes of an element.
        shape: Shape of the arrays, samples first.
    """

    count: int
    elements: int
    parts: tuple[Part, ...]
    whole: tuple[str, ...]
    scattered: tuple[str, ...]
    first: int
    last: int
    sample_size: int
    itemsize: int
    shape: tuple[int, ...]

    @property
    def is_spread(self) -> bool:
        """Whether no axis is named and the share of differing elements is at least 5 %."""
        return not self.parts and self.count >= _SPREAD * self.elements

    @property
    def words(self) -> str:
        """The place in one sentence, without a full stop."""
        head = f"{self.count} of {self.elements} elements differ"
        if not self.count:
            return head
        if not self.parts:
            axes = [f"{name}s" for name in (*self.whole, *self.scattered)]
            verb = "spread over" if self.is_spread else "scattered over"
            return f"{head}, {verb} the {_join(axes)}" if axes else head
        text = f"{head}: {'; '.join(part.words for part in self.parts)}"
        if self.whole:
            text += f"; in all {_join([f'{name}s' for name in self.whole])}"
        return text + self._address()

    def _address(self) -> str:
        inner = [p for p in self.parts if p.name != "sample"]
        size = self.sample_size * self.itemsize
        if not inner or (self.first == 0 and self.last == self.sample_size - 1):
            return ""
        return f"; bytes {self.first * self.itemsize} to {(self.last + 1) * self.itemsize - 1} of {size}"

    @property
    def supports(self) -> Iterator[tuple[str, Mask, float]]:
        """Yield the simple supports of the difference: words, bool[S, *shape] and bits; the cheapest first."""
        for part in sorted(self.parts, key=lambda part: part.bits):
            yield part.short, part.spread(self.shape), part.bits
        if len(self.parts) > 1:
            mask = np.logical_and.reduce([part.spread(self.shape) for part in self.parts])
            yield ", ".join(part.short for part in self.parts), mask, sum(part.bits for part in self.parts)


def describe_place(wrong: Mask, itemsize: int = 1, able: Mask | None = None) -> Place:
    """Describe the place of the differences between two results.

    Args:
        wrong: Elements that differ, bool[S, *shape].
        itemsize: Bytes of an element.
        able: Elements that can show a difference: not at a clamp; all by default. Indices without such an element
            count as hit.
    """
    count, flat = int(wrong.sum()), wrong.reshape(len(wrong), -1).any(axis=0)
    parts, whole, scattered = [], [], []
    for axis, name in name_axes(wrong.shape):
        if wrong.shape[axis] < 2 or not count:
            continue
        hit = hits_along(wrong, axis)
        missing = ~hit if able is None else ~hit & hits_along(able, axis)
        if not missing.any() and hit.mean() > 0.5:
            whole.append(name)
        elif _is_random(count, hit):
            scattered.append(name)
        else:
            indices = np.flatnonzero(hit)
            inside = float(np.take(wrong, indices, axis).mean())
            parts.append(Part(axis, name, len(hit), indices, inside))
    hits = np.flatnonzero(flat)
    ends = (int(hits[0]), int(hits[-1])) if count else (0, 0)
    lists = tuple(parts), tuple(whole), tuple(scattered)
    return Place(count, wrong.size, *lists, *ends, flat.size, itemsize, wrong.shape)


def hits_along(mask: Mask, axis: int) -> Mask:
    """Return the indices of an axis with any element of the mask, bool[K]."""
    return np.asarray(mask.any(axis=tuple(i for i in range(mask.ndim) if i != axis)))


def name_axes(shape: Sequence[int]) -> list[tuple[int, str]]:
    """Return number and name of the axes of a result [S, *shape]; axes of one element between them have no name."""
    kept = [0, *(i for i in range(1, len(shape) - 1) if shape[i] > 1), len(shape) - 1]
    kept = list(dict.fromkeys(kept))
    names = _NAMES.get(len(kept), ("sample", *(f"axis {i}" for i in range(1, len(kept)))))
    return list(zip(kept, names, strict=True))


def list_ranges(numbers: Indices) -> str:
    """Write ascending numbers as ranges: 0, 3..5."""
    cuts = np.flatnonzero(np.diff(numbers) > 1) + 1
    runs = np.split(numbers, cuts) if len(numbers) else []
    texts = [str(int(run[0])) if len(run) == 1 else f"{int(run[0])}..{int(run[-1])}" for run in runs]
    more = f" and {len(texts) - _MOST_RANGES} more ranges" if len(texts) > _MOST_RANGES else ""
    return ", ".join(texts[:_MOST_RANGES]) + more


def find_period(hit: Mask) -> tuple[int, Indices] | None:
    """Return the smallest period p <= K / 2 with its phases if hit[i] = phase[i mod p] for 98 % of the indices."""
    for period in range(2, len(hit) // 2 + 1):
        phase = np.array([hit[i::period].any() for i in range(period)])
        if (
            not phase.all()
            and phase.sum() <= period // 2 + 1
            and (np.resize(phase, len(hit)) == hit).mean() > _PERIODIC
        ):
            return period, np.flatnonzero(phase)
    return None


def log2_choose(size: int, count: int) -> float:
    """Return log2 of the number of subsets of `count` elements of `size`."""
    return (lgamma(size + 1) - lgamma(count + 1) - lgamma(size - count + 1)) / log(2)


def _is_random(count: int, hit: Mask) -> bool:
    indices = np.flatnonzero(hit)
    is_range = int(indices[-1] - indices[0]) + 1 == len(indices)
    ways = log10(len(hit)) if is_range else log2_choose(len(hit), len(indices)) * log10(2)
    return ways + count * log10(len(indices) / len(hit)) > CHANCE


def _log2_ways(part: Part) -> float:
    period = find_period(part.mask)
    plain = log2_choose(part.size, len(part.indices))
    return plain if period is None else min(plain, log2(part.size) + period[0])


def _join(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"

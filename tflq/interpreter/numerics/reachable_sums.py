"""The sums of products that a layer can reach: all values of sum_k w[k] * x[k] for integers x[k] in [low, high].

With u = x - low for w > 0, u = high - x for w < 0, R = high - low and g = gcd of the weights, a sum is base + g * t,
t = sum_k u[k] * |w[k]| / g, 0 <= u[k] <= R. Let a be the sorted |w| / g. If a[0] = 1 and each
a[k] <= 1 + R * (a[0] + ... + a[k-1]), every t in 0..R * sum(a) is reached. Any other filter is decided by a set of
bits: bit t is set if t is reached; adding a[k] times 0..R takes one shift per power of two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tflq.arrays import Integers
from tflq.errors import LimitError

LARGEST_SET = 1 << 30
"""Bits of the largest set, times weights: 128 MiB, 1 s."""


@dataclass(frozen=True, eq=False)
class ReachableSums:
    """The sums of one filter.

    Attributes:
        weights: int64[K].
        low: Smallest x.
        high: Largest x.
    """

    weights: Integers
    low: int
    high: int

    @cached_property
    def base(self) -> int:
        """Smallest sum."""
        return int((self.weights * np.where(self.weights > 0, self.low, self.high)).sum())

    @cached_property
    def step(self) -> int:
        """Greatest common divisor of the weights; 1 if all are 0."""
        return int(np.gcd.reduce(self.weights, initial=0)) or 1

    @cached_property
    def last(self) -> int:
        """Largest t."""
        return (self.high - self.low) * int(self._sizes.sum())

    @cached_property
    def order(self) -> Integers:
        """Positions of the weights other than 0, smallest magnitude first."""
        order = np.argsort(np.abs(self.weights), kind="stable")
        used: Integers = order[self.weights[order] != 0]
        return used

    @cached_property
    def _sizes(self) -> Integers:
        return np.abs(self.weights[self.order]) // self.step

    @cached_property
    def _sets(self) -> Sequence[int] | None:
        """Sets of the values of t that the first k sizes reach, as bits, k = 0..K; None if every t is reached.

        Raises:
            LimitError: The sets are larger than LARGEST_SET.
        """
        span = self.high - self.low
        before = np.concatenate(([0], np.cumsum(self._sizes)[:-1])) * span if self._sizes.size else self._sizes
        if np.all(self._sizes <= before + 1):
            return None
        if self.last * self._sizes.size > LARGEST_SET:
            raise LimitError(f"{self._sizes.size} weights without a common pattern reach up to {self.last} sums")
        sets = [1]
        for size in self._sizes.tolist():
            sets.append(_add_multiples(sets[-1], size, span))
        return sets

    @property
    def count(self) -> int:
        """Number of sums."""
        return self.last + 1 if self._sets is None else self._sets[-1].bit_count()

    def count_between(self, start: int, end: int) -> int:
        """Return the number of sums in [start, end)."""
        first, last = self._places(start, end)
        if first >= last:
            return 0
        return last - first if self._sets is None else self._slice(first, last).bit_count()

    def find_between(self, start: int, end: int) -> int | None:
        """Return the smallest sum in [start, end); None if there is none."""
        first, last = self._places(start, end)
        if first >= last:
            return None
        if self._sets is not None:
            bits = self._slice(first, last)
            if not bits:
                return None
            first += (bits & -bits).bit_length() - 1
        return self.base + self.step * first

    def find_input(self, total: int) -> Integers:
        """Return x with the sum `total`, int64[K].

        Raises:
            ValueError: No x has this sum.
        """
        rest, misfit = divmod(total - self.base, self.step)
        if misfit or self.find_between(total, total + 1) is None:
            raise ValueError(f"no input has the sum {total}")
        units = np.zeros(self.weights.shape, np.int64)
        for place in range(self._sizes.size - 1, -1, -1):
            size = int(self._sizes[place])
            taken = min(self.high - self.low, rest // size)
            while self._sets is not None and not self._sets[place] >> (rest - taken * size) & 1:
                taken -= 1
            units[self.order[place]] = taken
            rest -= taken * size
        return np.where(self.weights > 0, self.low + units, np.where(self.weights < 0, self.high - units, self.low))

    def _places(self, start: int, end: int) -> tuple[int, int]:
        """Return t of the first sum at or above `start`, and of the first one at or above `end`."""
        first, last = (-((self.base - value) // self.step) for value in (start, end))
        return max(first, 0), min(last, self.last + 1)

    def _slice(self, first: int, last: int) -> int:
        assert self._sets is not None
        return self._sets[-1] >> first & ((1 << (last - first)) - 1)


def _add_multiples(bits: int, size: int, most: int) -> int:
    """Return the set with 0..most times `size` added to each member."""
    taken = 0
    while taken < most:
        step = min(taken + 1, most - taken)
        bits |= bits << (step * size)
        taken += step
    return bits

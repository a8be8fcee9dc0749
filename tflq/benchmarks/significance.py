"""Statistics of correct predictions: Wilson's interval of an accuracy, and McNemar's test of two settings."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Z_95 = 1.959963984540054
"""Quantile 0.975 of the normal distribution: 95 % of it is within +-Z_95."""
LEVEL = 0.05
"""Significance level: a smaller p-value counts as a difference."""


def wilson_percent(right: int, total: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of an accuracy, in percent.

    (p + z^2 / 2n +- z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n), with p = right / n and n = total, without
    continuity correction (E. B. Wilson, Probable inference, the law of succession, and statistical inference, 1927).
    """
    share, square = right / total, Z_95**2 / total
    middle = share + square / 2
    half = Z_95 * math.sqrt(share * (1 - share) / total + square / (4 * total))
    low, high = (middle - half) / (1 + square), (middle + half) / (1 + square)
    return (100 * low if right else 0.0), (100 * high if right < total else 100.0)


@dataclass(frozen=True)
class Paired:
    """Two settings on the same samples.

    Attributes:
        gained: Number of samples that only the first setting predicts correctly.
        lost: Number of samples that only the second setting predicts correctly.
    """

    gained: int
    lost: int

    @property
    def p_value(self) -> float:
        """McNemar's exact test, two-sided: min(1, 2 sum over k <= min(a, b) of C(n, k) / 2^n), n = a + b.

        It is the probability of two counts with at least this difference if each of the n discordant samples is equally
        likely to be gained or lost (Q. McNemar, 1947; exact as the binomial test). It is 1 for n = 0.
        """
        n = self.gained + self.lost
        tail = term = 1
        for k in range(min(self.gained, self.lost)):
            term = term * (n - k) // (k + 1)
            tail += term
        return min(1.0, 2 * tail / (1 << n))

    @property
    def is_noise(self) -> bool:
        """Whether the samples do not distinguish the two settings: p >= 0.05."""
        return self.p_value >= LEVEL

    def __str__(self) -> str:
        """Return the counts, the p-value and its meaning."""
        meaning = "within the noise" if self.is_noise else "more than noise"
        return f"{self.gained} gained, {self.lost} lost, p = {self.p_value:.2g}: {meaning}"


def count_paired(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> Paired:
    """Count the samples that only one of two settings predicts correctly: bool[S] each."""
    return Paired(int(np.count_nonzero(first & ~second)), int(np.count_nonzero(second & ~first)))


def interval_text(right: int, total: int) -> str:
    """Return Wilson's interval as text."""
    low, high = wilson_percent(right, total)
    return f"{low:.1f}..{high:.1f} %"

"""Wilson's interval and McNemar's test: against their definitions, in exact numbers."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest

from tflq.benchmarks.significance import Z_95, Paired, count_paired, interval_text, wilson_percent


def test_the_interval_holds_the_shares_that_the_count_does_not_contradict() -> None:
    """Its ends are the two shares q with (p - q)^2 = z^2 q (1 - q) / n: Wilson's definition, solved exactly."""
    z, rng = Fraction(Z_95), np.random.default_rng(2)
    for total in (1, 7, 20, 500, 100000):
        for right in {0, 1, total // 3, total - 1, total, int(rng.integers(0, total + 1))}:
            share = Fraction(right, total)
            for end in wilson_percent(right, total):
                q = Fraction(end) / 100
                distance = abs((share - q) ** 2 - z**2 * q * (1 - q) / total)
                assert distance < Fraction(1, 10**12)
            low, high = wilson_percent(right, total)
            assert 0 <= low <= 100 * right / total <= high <= 100


def test_published_values() -> None:
    """R: binom::binom.wilson(448, 500), (0, 20), (20, 20)."""
    assert interval_text(448, 500) == "86.6..92.0 %"
    assert interval_text(0, 20) == "0.0..16.1 %"
    assert interval_text(20, 20) == "83.9..100.0 %"


@pytest.mark.parametrize(("gained", "lost"), list(product(range(7), range(7))))
def test_the_test_counts_outcomes(gained: int, lost: int) -> None:
    """All 2^n outcomes are as likely; p is the share of those that are as far from the middle or farther."""
    n = gained + lost
    as_far = sum(comb(n, k) for k in range(n + 1) if abs(2 * k - n) >= abs(gained - lost))
    found = Paired(gained, lost)
    assert found.p_value == as_far / 2**n
    assert found.is_noise == (20 * as_far >= 2**n)
    assert found.p_value == Paired(lost, gained).p_value


def test_pairs_are_counted_by_sample() -> None:
    first, second = np.array([1, 1, 1, 0, 0, 0], bool), np.array([1, 0, 0, 1, 0, 0], bool)
    assert count_paired(first, second) == Paired(2, 1)
    assert str(Paired(2, 1)) == "2 gained, 1 lost, p = 1: within the noise"
    assert str(Paired(9, 0)) == "9 gained, 0 lost, p = 0.0039: more than noise"
    assert Paired(3000, 3400).p_value == pytest.approx(6.1e-7, rel=0.02)

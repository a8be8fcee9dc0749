"""Reachable sums, and two rules over them, against all inputs one by one."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tflq.interpreter.numerics.reachable_sums import ReachableSums
from tflq.interpreter.numerics.step_difference import compare_steps

CASES = [
    ([1, 2, -3], -2, 3),
    ([4, -6, 10], -2, 3),
    ([5, 7], 0, 3),
    ([0, 3, -3, 7], -1, 2),
    ([0, 0], -4, 4),
    ([-9], -3, 3),
    ([127, -127, 64], -3, 2),
]


def list_sums(weights: list[int], low: int, high: int) -> set[int]:
    """Return the sums of all inputs."""
    return {int(np.dot(weights, x)) for x in product(range(low, high + 1), repeat=len(weights))}


@pytest.mark.parametrize(("weights", "low", "high"), CASES)
def test_every_sum(weights: list[int], low: int, high: int) -> None:
    expected = list_sums(weights, low, high)
    sums = ReachableSums(np.array(weights, np.int64), low, high)
    assert sums.count == len(expected)
    for start in range(min(expected) - 2, max(expected) + 3):
        for end in (start, start + 1, start + 5):
            inside = sorted(s for s in expected if start <= s < end)
            assert sums.count_between(start, end) == len(inside)
            assert sums.find_between(start, end) == (inside[0] if inside else None)
    for total in range(min(expected) - 2, max(expected) + 3):
        if total not in expected:
            with pytest.raises(ValueError, match="no input"):
                sums.find_input(total)
            continue
        x = sums.find_input(total)
        assert int(np.dot(weights, x)) == total
        assert low <= x.min() <= x.max() <= high


def test_drawn_filters_of_the_full_range() -> None:
    rng = np.random.default_rng(11)
    for _ in range(20):
        weights = rng.integers(-127, 128, 2)
        expected = {
            int(s) for s in np.add.outer(weights[0] * np.arange(-128, 128), weights[1] * np.arange(-128, 128)).flat
        }
        sums = ReachableSums(weights.astype(np.int64), -128, 127)
        assert sums.count == len(expected)
        total = sorted(expected)[int(rng.integers(len(expected)))]
        assert int(np.dot(weights, sums.find_input(total))) == total


def test_two_rules_over_all_sums() -> None:
    rng = np.random.default_rng(12)
    for _ in range(20):
        weights = rng.integers(-9, 10, (3, 3))
        first, second = (np.sort(rng.integers(-60, 61, (6, 3)), axis=0) for _ in range(2))
        sums = [ReachableSums(row, -2, 3) for row in weights]
        difference = compare_steps(sums, first, second, -4)
        distances = []
        for o, row in enumerate(weights):
            for total in list_sums(row.tolist(), -2, 3):
                a, b = (-4 + int((t[:, o] <= total).sum()) for t in (first, second))
                distances.append(abs(a - b))
        assert difference.reachable == len(distances)
        assert difference.differing == sum(d > 0 for d in distances)
        assert difference.largest == max(distances)
        example = difference.example
        assert (example is None) == (difference.largest == 0)
        if example is not None:
            assert abs(example.first - example.second) == difference.largest
            assert int(np.dot(weights[example.channel], example.taps)) == example.total
            reached = [-4 + int((t[:, example.channel] <= example.total).sum()) for t in (first, second)]
            assert reached == [example.first, example.second]

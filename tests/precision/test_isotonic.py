"""The rising function nearest to some values, against every pooling of neighbors."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tflq.precision.search import rising


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 20)), min_size=1, max_size=7))
def test_no_pooling_that_rises_is_nearer(pairs: list[tuple[int, int]]) -> None:
    found = rising([(float(a), float(b)) for a, b in pairs])
    places = sorted({a for a, _ in pairs})
    for (a, f), (b, g) in product(zip([p for p, _ in pairs], found, strict=True), repeat=2):
        assert f <= g + 1e-9 if a < b else True
        assert f == g if a == b else True
    cost = sum((b - f) ** 2 for (_, b), f in zip(pairs, found, strict=True))
    for cuts in product((False, True), repeat=len(places) - 1):
        pool = dict(zip(places, np.cumsum((False, *cuts)), strict=True))
        means = {k: np.mean([b for a, b in pairs if pool[a] == k]) for k in pool.values()}
        if list(means.values()) == sorted(means.values()):
            assert cost <= sum((b - means[pool[a]]) ** 2 for a, b in pairs) + 1e-9


def test_a_lucky_setting_is_worth_what_its_neighbors_are() -> None:
    assert rising([(14.1, 86.8), (14.9, 89.0), (15.3, 87.6), (16.9, 87.2)])[1] < 88.0

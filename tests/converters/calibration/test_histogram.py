"""The histogram that widens holds exactly what numpy counts on all values at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tflq.converters.calibration.statistics import Histogram

CAPACITY = 64


def histogram_of(parts: list[np.ndarray]) -> Histogram:
    found = Histogram(CAPACITY)
    for part in parts:
        found.add(part)
    return found


@given(st.lists(st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=1, max_size=20), min_size=1, max_size=6))
def test_counts_equal_numpy_and_do_not_depend_on_the_cut(rows: list[list[float]]) -> None:
    parts = [np.array(row, np.float32) for row in rows]
    everything = np.concatenate(parts)
    found, reverse, whole = histogram_of(parts), histogram_of(parts[::-1]), histogram_of([everything])
    counts, low = found.trimmed()
    edges = low + found.width * np.arange(counts.size + 1)
    assert counts.size <= CAPACITY
    inside = np.floor(everything.astype(np.float64) / found.width).astype(np.int64) - round(low / found.width)
    assert np.array_equal(counts, np.bincount(inside, minlength=counts.size))
    assert edges[0] <= everything.min() or everything.min() > 0
    for other in (reverse, whole):
        assert other.width == found.width
        assert np.array_equal(other.trimmed()[0], counts)


@pytest.mark.parametrize("share", [0.0, 0.0005, 0.01, 0.3, 0.5, 0.9, 0.9995, 1.0])
@pytest.mark.parametrize("rectified", [False, True])
def test_quantiles_are_within_a_bin_of_numpys(share: float, rectified: bool) -> None:
    rng = np.random.default_rng(4)
    values = rng.standard_normal(20000).astype(np.float32)
    if rectified:
        values = np.maximum(values, 0)
    found = Histogram(4096)
    for part in np.array_split(values, 7):
        found.add(part)
    # Between two values numpy interpolates, the histogram fills bins: they agree to the neighboring values and a bin.
    low, high = (
        np.quantile(values, np.clip(share + d, 0, 1), method=m) for d, m in ((-1e-4, "lower"), (1e-4, "higher"))
    )
    assert low - found.width <= found.quantile(share) <= high + found.width


def test_memory_stays_the_same() -> None:
    found = histogram_of([np.array([1e-30, 1e30], np.float32)])
    assert found.trimmed()[0].sum() == 2
    assert found.trimmed()[0].size <= CAPACITY

"""Tables of two operands as sums with factors: right for all pairs, or not found."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.interpreter.compiled.pairs import AffinePair, affine_pair, rounded_pair

CODES = np.arange(-128, 128).astype(np.float64)


def results(pair: AffinePair) -> np.ndarray:
    return pair.of(CODES[:, None], CODES)


@pytest.mark.parametrize("seed", range(6))
def test_sums_are_found_again(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = 2.0 ** rng.uniform(-3, 0.5, 2) * rng.choice([-1, 1], 2)
    table = np.clip(np.floor(first * CODES[:, None] + second * CODES + rng.uniform(-20, 20) + 0.5), -128, 127)
    found = affine_pair(table, CODES, CODES)
    assert found is not None
    assert np.array_equal(results(found), table)


def test_what_is_no_sum_is_not_found() -> None:
    table = np.clip(np.rint(CODES[:, None] * CODES / 90), -128, 127)
    assert affine_pair(table, CODES, CODES) is None


def test_a_sum_that_one_pair_breaks_is_not_found() -> None:
    table = np.clip(np.rint(0.4 * CODES[:, None] + 0.3 * CODES), -128, 127)
    table[40, 40] += 1
    assert affine_pair(table, CODES, CODES) is None


def test_a_table_without_a_half_nearby() -> None:
    table = np.clip(CODES[:, None] + 0 * CODES, -100, 100)
    found = affine_pair(table, CODES, CODES)
    assert found is not None
    assert np.array_equal(results(found), table)


@pytest.mark.parametrize("seed", range(6))
def test_sums_of_rounded_operands_are_found_again(seed: int) -> None:
    rng = np.random.default_rng(seed)
    slopes, offsets = 2.0 ** rng.uniform(-3, 3, 2), rng.integers(-90, 90, 2)
    one, two = (np.floor(slope * (CODES - offset) + 0.5) for slope, offset in zip(slopes, offsets, strict=True))
    table = np.clip(np.floor((one[:, None] + two) * rng.uniform(0.1, 0.6) + rng.uniform(-9, 9) + 0.5), -128, 127)
    found = rounded_pair(table, CODES, CODES, (one, two))
    assert found is not None
    assert np.array_equal(found.of(CODES[:, None], CODES), table)
    table[10, 200] += 1 if table[10, 200] < 0 else -1
    assert rounded_pair(table, CODES, CODES, (one, two)) is None


def test_terms_that_are_no_lines_are_not_found() -> None:
    square = np.floor(CODES**2 / 128)
    table = np.clip(square[:, None] + CODES, -128, 127)
    assert rounded_pair(table, CODES, CODES, (square, CODES)) is None

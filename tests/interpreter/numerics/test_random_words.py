"""Philox and Threefry give the known answers that Random123 publishes (kat_vectors), and their words become reals."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tflq.interpreter.numerics.random_words import (
    philox,
    philox_words,
    threefry_words,
    uniform_doubles,
    uniform_floats,
)

PI = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0)
ONES = (0xFFFFFFFF,) * 6


def words(numbers: Sequence[int]) -> list[np.ndarray]:
    return [np.array([number], np.uint64) for number in numbers]


def test_philox_4x32_10() -> None:
    answers = {
        (0,) * 6: (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8),
        ONES: (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
        PI: (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    }
    for numbers, answer in answers.items():
        assert philox_words(words(numbers[4:]), words(numbers[:4])).tolist() == [list(answer)]


def test_threefry_2x32_20() -> None:
    answers = {
        (0,) * 4: (0x6B200159, 0x99BA4EFE),
        ONES[:4]: (0x1CB996FC, 0xBB002BE7),
        PI[:4]: (0xC4923A9C, 0x483DF7A0),
    }
    for numbers, answer in answers.items():
        assert threefry_words(words(numbers[2:]), words(numbers[:2])).tolist() == [list(answer)]


def test_seeds_are_key_and_upper_half_of_the_counter() -> None:
    counter = PI[0] | PI[1] << 32, PI[2] | PI[3] << 32
    key = PI[4] | PI[5] << 32
    drawn = philox((key, counter[1]), counter[0] - 1, 2)
    assert drawn[1].tolist() == [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]
    whole = (1 << 64) - 1
    assert philox((whole, whole), whole, 2)[0].tolist() == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
    assert np.array_equal(philox((whole, whole), whole, 2)[1], philox((whole, 0), 0, 1)[0])  # the counter wraps


@pytest.mark.every
@pytest.mark.parametrize(
    ("reals", "lowest", "middle", "highest"),
    [
        (lambda w: uniform_floats(w), 0x800000, 0x400000, 0x7FFFFF),
        (lambda w: uniform_doubles(w >> np.uint64(32), w & np.uint64(0xFFFFFFFF)), 1 << 52, 1 << 51, (1 << 52) - 1),
    ],
)
def test_words_become_reals_below_1(
    reals: Callable[[np.ndarray], np.ndarray], lowest: int, middle: int, highest: int
) -> None:
    found = reals(np.array([lowest, middle, highest], np.uint64))
    assert found.tolist() == [0.0, 0.5, 1 - 1 / lowest]

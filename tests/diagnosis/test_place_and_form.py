"""Place, form and evidence of a difference, with numbers worked out by hand."""

from __future__ import annotations

from math import log2

import numpy as np
import pytest

from tflq.diagnosis.form import describe_form
from tflq.diagnosis.hypotheses.evidence import Evidence
from tflq.diagnosis.place import describe_place, find_period

SHAPE = (5, 1, 8, 6, 20)


def differ(*place: slice | int, shape: tuple[int, ...] = SHAPE) -> np.ndarray:
    wrong = np.zeros(shape, bool)
    wrong[place] = True
    return wrong


EVERY = slice(None)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (
            differ(EVERY, EVERY, 3),
            "600 of 4800 elements differ: row 3 of 8 (100% of their elements); in all samples, columns and channels; "
            "bytes 360 to 479 of 960",
        ),
        (
            differ(EVERY, EVERY, EVERY, EVERY, slice(16, 20)),
            "960 of 4800 elements differ: channels 16..19 of 20 (100% of their elements), the tail after the last "
            "whole group of 16; in all samples, rows and columns; bytes 16 to 959 of 960",
        ),
        (
            differ(2),
            "960 of 4800 elements differ: sample 2 of 5 (100% of their elements); in all rows, columns and channels",
        ),
        (differ(), "4800 of 4800 elements differ, spread over the samples, rows, columns and channels"),
    ],
)
def test_the_place_in_words(wrong: np.ndarray, words: str) -> None:
    assert describe_place(wrong).words == words


@pytest.mark.parametrize(("elements", "channels", "is_named"), [(6, 1, True), (5, 3, False)])
def test_an_axis_is_named_if_chance_is_excluded(elements: int, channels: int, is_named: bool) -> None:
    """6 elements in one of 8: P = 8 * (1/8)^6 = 3e-5. 5 elements in 3 of 22: P = 1540 * (3/22)^5 = 0.07."""
    size = 8 if channels == 1 else 22
    wrong = np.zeros((40, size), bool)
    wrong[np.arange(elements) * 7, [0] * elements if channels == 1 else [1, 9, 9, 17, 17]] = True
    assert ("channel" in [part.name for part in describe_place(wrong).parts]) == is_named


def test_indices_that_cannot_show_count_as_hit() -> None:
    wrong, able = differ(EVERY, EVERY, EVERY, EVERY, slice(0, 15)), np.ones(SHAPE, bool)
    able[..., 15:] = False
    assert [part.name for part in describe_place(wrong).parts] == ["channel"]
    assert describe_place(wrong, able=able).parts == ()


def test_periods() -> None:
    hit = np.array([False] * 4 + [True] * 4 + [False] * 4 + [True] * 4)
    period = find_period(hit)
    assert period is not None
    assert (period[0], period[1].tolist()) == (8, [4, 5, 6, 7])
    assert find_period(np.ones(8, bool)) is None


@pytest.mark.parametrize(
    ("change", "name", "words"),
    [
        (lambda r: r + 3, "constant", "every difference is +3"),
        (lambda r: r ^ 64, "one bit", "only bit 6 differs"),
        (lambda r: np.minimum(r, 20), "clamp", "the result is 20 at every element with a larger expected value"),
        (lambda r: np.roll(r, 2, 2), "copy", "they contain the expected values of 2 rows before"),
    ],
)
def test_the_form_in_words(change, name: str, words: str) -> None:
    rng = np.random.default_rng(3)
    sound = rng.integers(-60, 60, SHAPE).astype(np.int8)
    got = change(sound)
    form = describe_form(got, sound, got != sound)
    assert name in form.names
    assert words in form.sentences


def test_one_in_a_hundred_is_a_rounding() -> None:
    sound = np.zeros((1, 1000), np.int8)
    got = sound.copy()
    got[0, [5, 700]] = (1, -1)
    assert "rounding" in describe_form(got, sound, got != sound).names


def test_evidence_weighs_a_cause_against_the_list() -> None:
    """5 of 6468 elements differ by one of 2 values: the list takes 5 * (log2 6468 + 1) = 68.3 bits."""
    evidence = Evidence(5, 6468, 2)
    listed = 5 * (log2(6468) + 1)
    assert evidence.gain(0, 0, 1) == pytest.approx(listed)
    assert evidence.gain(0, 3 * 16 + log2(1540), 512) == pytest.approx(listed - 48 - log2(1540) - 9)
    assert evidence.gain(0, 0, 512) > 20 > evidence.gain(0, 58.6, 512)
    assert evidence.gain(5, 0, 1) == 0

"""Bits are compared, NaN equals NaN, and the report names the first element."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.diagnosis.difference import NO_ELEMENTS, Difference, compare, differing, merge


def test_equal_arrays() -> None:
    a = np.arange(6, dtype=np.int8).reshape(2, 3)
    assert compare(a, a.copy()) == Difference(6, 0)
    assert compare(a, a.copy()).is_equal


def test_first_difference_is_named_by_sample_and_index() -> None:
    expected = np.zeros((4, 2, 3), np.int8)
    found = expected.copy()
    found[2, 1, 0], found[3, 0, 0] = -128, 127
    result = compare(found, expected, first_sample=10)
    assert (result.elements, result.differing, result.largest) == (24, 2, 128.0)
    assert result.first is not None
    assert (result.first.sample, result.first.index, result.first.found, result.first.expected) == (
        12,
        (1, 0),
        "-128",
        "0",
    )


def test_integers_do_not_wrap() -> None:
    low, high = np.array([[-128]], np.int8), np.array([[127]], np.int8)
    assert compare(low, high).largest == 255
    assert compare(np.array([[0]], np.uint8), np.array([[255]], np.uint8)).largest == 255


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_floats_are_compared_by_their_bits(dtype: type[np.floating]) -> None:
    a = np.array([[0.0, np.nan, 1.0, np.inf]], dtype)
    b = np.array([[-0.0, -np.nan, np.nextafter(dtype(1), dtype(2)), np.inf]], dtype)
    assert differing(a, b).tolist() == [[True, False, True, False]]
    assert compare(a, b).differing == 2


def test_nan_payloads_are_one_nan() -> None:
    a = np.array([[0x7FC00000, 0xFFC12345]], np.uint32).view(np.float32)
    assert compare(a, a[:, ::-1]).is_equal


def test_nan_against_a_number_is_infinitely_far() -> None:
    assert compare(np.array([[np.nan]], np.float32), np.array([[1.0]], np.float32)).largest == np.inf
    assert compare(np.array([[np.inf, 1.0]], np.float32), np.array([[np.inf, 3.0]], np.float32)).largest == 2.0


def test_complex_and_bool_and_strings() -> None:
    assert compare(np.array([[1 + 1j]], np.complex64), np.array([[1 - 1j]], np.complex64)).largest == 2.0
    assert compare(np.array([[True, False]]), np.array([[True, True]])).differing == 1
    a, b = np.array([[b"a", b"b"]], object), np.array([[b"a", b"c"]], object)
    assert compare(a, b).differing == 1
    assert compare(a, a.copy()).is_equal


@pytest.mark.parametrize("other", [np.zeros((2, 4), np.int8), np.zeros((2, 3), np.uint8)])
def test_another_shape_or_type_differs_everywhere(other: np.ndarray) -> None:
    result = compare(np.zeros((2, 3), np.int8), other)
    assert result.differing == other.size
    assert result.mismatch == f"int8[2, 3] against {other.dtype}{list(other.shape)}"
    assert not result.is_equal


def test_empty_arrays_are_equal_unless_their_shapes_differ() -> None:
    assert compare(np.zeros((2, 0), np.int8), np.zeros((2, 0), np.int8)).is_equal
    assert not compare(np.zeros((2, 0, 1), np.int8), np.zeros((2, 0), np.int8)).is_equal


def test_chunks_add_up_to_the_whole() -> None:
    generator = np.random.default_rng(0)
    a, b = generator.integers(0, 2, (2, 50, 7), np.int8)
    whole = compare(a, b)
    parts = [compare(a[i : i + 8], b[i : i + 8], i) for i in range(0, 50, 8)]
    assert sum(parts, NO_ELEMENTS) == whole
    assert merge({1: parts[0]}, {1: parts[1], 2: whole}) == {1: parts[0] + parts[1], 2: whole}

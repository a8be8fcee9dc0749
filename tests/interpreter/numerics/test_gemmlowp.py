"""Fixed-point exp and reciprocal against the real functions; their bits are held to TFLite in test_softmax.py."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.interpreter.numerics.gemmlowp import (
    bit_length,
    exp_on_negative_values,
    one_over_one_plus_x,
    reciprocal,
    rounding_divide_int16_by_pot,
)

ONE = 2.0**31


@pytest.mark.parametrize("integer_bits", [0, 1, 3, 5])
def test_exp(integer_bits):
    raw = -np.unique(np.geomspace(1, 2**31, 4000).astype(np.int64))
    found = exp_on_negative_values(raw, integer_bits) / ONE
    assert np.abs(found - np.exp(raw / 2.0 ** (31 - integer_bits))).max() < 4e-7


def test_exp_of_zero_is_the_largest_code():
    assert exp_on_negative_values([0], 5).tolist() == [2**31 - 1]


def test_one_over_one_plus_x():
    raw = np.linspace(0, 2**31 - 1, 4001).astype(np.int64)
    assert np.abs(one_over_one_plus_x(raw) / ONE - 1 / (1 + raw / ONE)).max() < 1e-8


def test_reciprocal():
    raw = np.unique(np.geomspace(1 << 19, 2**32 - 1, 4000).astype(np.int64))
    mantissa, over_unit = reciprocal(raw, 12)
    real = raw / 2.0**19
    assert np.abs(mantissa / ONE / 2.0**over_unit * real - 1).max() < 1e-8


@pytest.mark.parametrize(
    ("exponent", "expected"), [(0, [5, -5, 0]), (1, [3, -3, 0]), (3, [1, -1, 0]), (16, [1, -1, 1])]
)
def test_rounding_divide_int16_by_pot(exponent, expected):
    assert rounding_divide_int16_by_pot(np.array([5, -5, 0], np.int16), exponent).tolist() == expected


def test_bit_length():
    values = [0, 1, 2, 3, 255, 256, 2**31 - 1, 2**31, 2**32 - 1]
    assert bit_length(np.array(values, np.int64)).tolist() == [v.bit_length() for v in values]

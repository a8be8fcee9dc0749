"""The primitives against rational arithmetic, and against values that gemmlowp's own C++ returns."""

from __future__ import annotations

from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import affine, kernel_settings, one_input
from tests.support.single_op import check_against_oracle
from tests.support.types import INT8
from tflq.errors import UnsupportedError
from tflq.interpreter.numerics import fixed_point as fp

INT32 = st.integers(-(2**31), 2**31 - 1)
HALF = Fraction(1, 2)


def half_up(x: Fraction) -> int:
    return floor(x + HALF)


def half_away(x: Fraction) -> int:
    return floor(x + HALF) if x >= 0 else -floor(-x + HALF)


def test_high_mul_is_rounded_to_nearest_with_ties_up():
    """Every pair of a grid that holds the ends, small numbers and exact ties."""
    grid = [-(2**31), -(2**31) + 1, -(2**30), -3, -2, -1, 0, 1, 2, 3, 2**15, 2**30, 2**30 + 1, 2**31 - 1]
    a, b = np.meshgrid(grid, grid)
    found = fp.saturating_rounding_doubling_high_mul(a, b)
    for x, y, z in zip(a.flat, b.flat, found.flat, strict=True):
        assert z == min(half_up(Fraction(int(x) * int(y), 2**31)), 2**31 - 1)


@given(INT32, INT32)
def test_high_mul_anywhere(a, b):
    expected = min(half_up(Fraction(a * b, 2**31)), 2**31 - 1)
    assert fp.saturating_rounding_doubling_high_mul(a, b) == expected


@given(st.integers(-(2**15), 2**15 - 1), st.integers(-(2**15), 2**15 - 1))
def test_sixteen_bit_twins(a, b):
    assert fp.saturating_rounding_doubling_high_mul(a, b, 16) == min(half_up(Fraction(a * b, 2**15)), 2**15 - 1)
    truncated = abs(a * b) >> 15
    assert fp.saturating_doubling_high_mul_16(a, b) == min(truncated if a * b >= 0 else -truncated, 2**15 - 1)


def test_divide_by_pot_is_rounded_half_away():
    """All values of 10 bits by all small exponents, and the ends by all exponents."""
    x = np.arange(-512, 512)
    for e in range(8):
        assert fp.rounding_divide_by_pot(x, e).tolist() == [half_away(Fraction(int(v), 2**e)) for v in x]
    for e in range(32):
        for v in (-(2**31), -(2**31) + 1, -1, 0, 1, 2**31 - 1):
            assert fp.rounding_divide_by_pot(v, e) == half_away(Fraction(v, 2**e))


@given(INT32, st.integers(2**30, 2**31 - 1), st.integers(-31, 0))
def test_mbq_right_shift_rounds_twice(x, multiplier, shift):
    high = half_up(Fraction(x * multiplier, 2**31))
    assert fp.multiply_by_quantized_multiplier(x, multiplier, shift) == half_away(Fraction(high, 2**-shift))


@given(INT32, st.integers(2**30, 2**31 - 1), st.integers(1, 30))
def test_mbq_left_shift_wraps_int32(x, multiplier, shift):
    wrapped = ((x << shift) + 2**31) % 2**32 - 2**31
    assert fp.multiply_by_quantized_multiplier(x, multiplier, shift) == half_up(Fraction(wrapped * multiplier, 2**31))


@given(st.integers(-(2**47) + 1, 2**47 - 1), st.integers(2**30, 2**31 - 1), st.integers(-31, 7))
def test_mbq64_rounds_once_half_up_with_a_15_bit_multiplier(x, multiplier, shift):
    reduced = min(half_up(Fraction(multiplier, 2**16)), 2**15 - 1)
    exact = half_up(Fraction(x * reduced, 2 ** (15 - shift)))
    assert fp.multiply_by_quantized_multiplier_64(x, multiplier, shift) == (exact + 2**31) % 2**32 - 2**31


@given(st.floats(2.0**-31, 2.0**30, allow_subnormal=False))
def test_quantize_multiplier_is_the_nearest_31_bit_number(real):
    multiplier, shift = (int(v) for v in fp.quantize_multiplier(real))
    assert 2**30 <= multiplier < 2**31
    assert abs(Fraction(multiplier, 2**31) * Fraction(2) ** shift - Fraction(real)) <= Fraction(2) ** (shift - 32)


@pytest.mark.parametrize(
    ("real", "expected"),
    [
        (0.0, (0, 0)),
        (1.0, (2**30, 1)),
        (0.5, (2**30, 0)),
        (1 - 2.0**-33, (2**30, 1)),  # rounds up to 2^31, which becomes 2^30 with one more shift
        (1 - 2.0**-32, (2**30, 1)),  # a tie goes away from zero
        (1 - 2.0**-31, (2**31 - 1, 0)),
        (2.0**-32, (2**30, -31)),
        (2.0**-33, (0, 0)),
        (-0.75, (-3 * 2**29, 0)),
    ],
)
def test_quantize_multiplier_at_its_edges(real, expected):
    assert tuple(int(v) for v in fp.quantize_multiplier(real)) == expected
    multipliers, shifts = fp.quantize_multiplier([real, 0.3])
    assert (multipliers[0], shifts[0]) == expected


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e15, max_value=1e15))
def test_round_half_away(x):
    assert fp.round_half_away(x) == half_away(Fraction(x))


def test_round_half_away_where_adding_a_half_fails():
    below_half = np.nextafter(0.5, 0)
    assert fp.round_half_away([below_half, -below_half, 0.5, -0.5, 2.5, -2.5]).tolist() == [0, 0, 1, -1, 3, -3]
    large = np.float32(2**23 + 1)
    assert fp.round_half_away(large) == large
    assert fp.round_half_away(large).dtype == np.float32
    assert np.isnan(fp.round_half_away(np.nan))
    assert fp.round_half_away(-np.inf) == -np.inf


def test_float_to_int32_is_what_x86_does():
    values = [1.9, -1.9, 2147483647.5, 2147483648.0, -2147483648.9, -2147483649.0, np.inf, -np.inf, np.nan]
    lowest = -(2**31)
    assert fp.float_to_int32(values).tolist() == [1, -1, 2**31 - 1, lowest, lowest, lowest, lowest, lowest, lowest]


def test_wrap_and_saturate():
    assert fp.wrap_int32([2**31, -(2**31) - 1, 2**32 + 5]).tolist() == [-(2**31), 2**31 - 1, 5]
    assert fp.saturate([40000, -40000, 3], 16).tolist() == [32767, -32768, 3]


@pytest.mark.parametrize("real", [0.0, 1.0, 1.5, -0.5, float("nan")])
def test_smaller_than_one_refuses(real):
    with pytest.raises(UnsupportedError, match="between 0 and 1"):
        fp.quantize_multiplier_smaller_than_one(real)


@pytest.mark.parametrize("real", [1.0, 0.5, float("nan")])
def test_greater_than_one_refuses(real):
    with pytest.raises(UnsupportedError, match="above 1"):
        fp.quantize_multiplier_greater_than_one(real)


def test_the_two_checked_multipliers():
    assert fp.quantize_multiplier_smaller_than_one(0.25) == (2**30, -1)
    assert fp.quantize_multiplier_greater_than_one(3.0) == (3 * 2**29, 2)


def test_activation_range_divides_in_float32():
    scale = np.float32(6) / np.float32(255)
    assert fp.activation_range("relu6", scale, -128, -128, 127) == (-128, 127)
    assert fp.activation_range("relu_n1_to_1", np.float32(0.5), 3, -128, 127) == (1, 5)
    assert fp.activation_range("relu", np.float32(0.5), 200, -128, 127) == (200, 127)
    assert fp.activation_range("none", np.float32(0.5), 3, -128, 127) == (-128, 127)
    with pytest.raises(UnsupportedError, match="does not fit int32"):
        fp.activation_range("relu6", np.float32(1e-9), 0, -128, 127)
    with pytest.raises(UnsupportedError, match="known are none, relu"):
        fp.activation_range("gelu", np.float32(1), 0, -128, 127)


@kernel_settings
@given(st.floats(0.004, 200), st.integers(-128, 127), st.integers(-128, 127))
def test_mbq_is_what_tflite_requantizes_with(oracle, ratio, z_in, z_out):
    """QUANTIZE from int8 to int8 is one MBQ and nothing else: all 256 values of TFLite's own C++."""
    x, y = affine(INT8, 0.25, z_in), affine(INT8, 0.25 / ratio, z_out)
    codes = np.arange(-128, 128)
    real = float(x.scale[0]) / float(y.scale[0])
    multiplier, shift = fp.quantize_multiplier(real)
    expected = np.clip(fp.multiply_by_quantized_multiplier(codes - z_in, multiplier, shift) + z_out, -128, 127)
    graph = one_input("quantize", (256,), (INT8, x), (INT8, y))
    results = check_against_oracle(oracle, graph, [codes.astype(np.int8)[None]])
    assert next(iter(results.values()))[0].tolist() == expected.tolist()

"""Every primitive against its definition in plain Python integers, at all borders and anywhere between them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.interpreter.numerics import plain
from tflq.interpreter.kernels.aipu.multiplier import scaled
from tflq.interpreter.kernels.gap9.rounding import round_half_up
from tflq.interpreter.kernels.tflite.undefined_shifts import rounding_divide_by_pot_x86
from tflq.interpreter.kernels.tpu_mlir.multiplier import shift_half_away, shift_half_up
from tflq.interpreter.numerics import fixed_point as fp
from tflq.interpreter.numerics import gemmlowp
from tflq.interpreter.numerics.fixed_point import norm
from tflq.interpreter.numerics.q15 import exp_q15


def near(*borders: int) -> st.SearchStrategy[int]:
    """Borders and their neighbors; with `st.integers` beside them, anything."""
    return st.sampled_from([b + d for b in borders for d in (-2, -1, 0, 1, 2)])


def signed(bits: int) -> st.SearchStrategy[int]:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    borders = near(low, high, 0, -(1 << (bits - 2)), 1 << (bits - 2), 1 << (bits // 2))
    return st.one_of(borders.map(lambda x: min(max(x, low), high)), st.integers(low, high))


INT32, INT16, INT48 = signed(32), signed(16), signed(48)
SHIFT = st.one_of(st.sampled_from([0, 1, 30, 31]), st.integers(0, 31))
TIES = st.builds(lambda k, e: (2 * k + 1) << e, st.integers(-(1 << 15), 1 << 15), st.integers(0, 14))
"""Odd multiples of a power of two: halfway between two results of a shift by one bit more."""
MULTIPLIER = st.one_of(near((1 << 30) + 2, (1 << 31) - 3, 0x7FFF0000), st.just(0), st.integers(1 << 30, (1 << 31) - 1))


@given(st.one_of(near(-(1 << 31), (1 << 31) - 1, 1 << 32, 0), st.integers(-(1 << 62), (1 << 62) - 1)))
def test_wrap(x: int) -> None:
    assert fp.wrap_int32(x) == plain.wrap32(x)


@given(st.one_of(INT32, INT48), st.integers(2, 32))
def test_saturate(x: int, bits: int) -> None:
    assert fp.saturate(x, bits) == plain.saturated(x, bits)


@given(INT32, INT32)
def test_high_products(a: int, b: int) -> None:
    assert fp.saturating_rounding_doubling_high_mul(a, b) == plain.high_mul(a, b)
    if not a == b == plain.INT32_MIN:
        assert gemmlowp.product(a, b) == plain.high_mul(a, b)


@given(INT16, INT16)
def test_high_products_of_16_bits(a: int, b: int) -> None:
    assert fp.saturating_rounding_doubling_high_mul(a, b, 16) == plain.high_mul_16(a, b)
    assert fp.saturating_doubling_high_mul_16(a, b) == plain.saturated(plain.truncated(a * b, 1 << 15), 16)


@given(st.one_of(INT32, TIES), SHIFT)
def test_divide_by_pot(x: int, exponent: int) -> None:
    assert fp.rounding_divide_by_pot(x, exponent) == plain.divide_by_pot(x, exponent)


@given(INT16, st.integers(0, 15))
def test_divide_int16_by_pot(x: int, exponent: int) -> None:
    assert gemmlowp.rounding_divide_int16_by_pot(np.array(x, np.int16), exponent) == plain.divide_by_pot(x, exponent)


@given(st.one_of(INT32, TIES), MULTIPLIER, st.one_of(st.sampled_from([-31, 0, 30]), st.integers(-31, 30)))
def test_mbq(x: int, multiplier: int, shift: int) -> None:
    assert fp.multiply_by_quantized_multiplier(x, multiplier, shift) == plain.multiplied(x, multiplier, shift)


@given(st.one_of(INT48, TIES), MULTIPLIER, st.one_of(st.sampled_from([-31, 0, 7]), st.integers(-31, 7)))
def test_mbq64(x: int, multiplier: int, shift: int) -> None:
    assert fp.multiply_by_quantized_multiplier_64(x, multiplier, shift) == plain.multiplied_once(x, multiplier, shift)


@given(st.one_of(INT48, TIES), st.one_of(st.sampled_from([-1, 0, 1]), st.integers(-14, 62)))
def test_shifts(x: int, shift: int) -> None:
    assert shift_half_up(x, shift) == plain.shift_half_up(x, shift)
    assert shift_half_away(x, shift) == plain.shift_half_away(x, shift)
    if shift >= 0:
        assert norm(x, shift) == plain.shift_half_up(x, shift)


@given(INT32, st.one_of(st.sampled_from([-64, -1, 31, 32, 63]), st.integers(-64, 63)))
def test_divide_by_pot_beyond_what_c_defines(x: int, exponent: int) -> None:
    assert rounding_divide_by_pot_x86(x, exponent) == plain.divide_by_pot_x86(x, exponent)


@given(st.one_of(INT32, TIES), st.one_of(near((1 << 15) - 3), st.integers(0, (1 << 20) - 1)), st.integers(-8, 40))
def test_nearest_even(x: int, m: int, n: int) -> None:
    assert scaled(x, m, n) == plain.scaled(x, m, n)


@given(st.one_of(near(2, 1 << 14, 1 << 15, 10 << 15, 11 << 15), st.integers(0, 12 << 15)))
def test_exponential_in_q15(x: int) -> None:
    assert exp_q15(-x) == plain.exp_q15(-x)


@given(st.builds(lambda k: k / 2, st.integers(-(1 << 40), 1 << 40)))
def test_round_half_up(x: float) -> None:
    assert round_half_up(x) == plain.shift_half_up(round(2 * x), 1)


@given(st.one_of(st.builds(lambda k: k / 2, st.integers(-(1 << 40), 1 << 40)), st.floats(-1e15, 1e15)))
def test_round_half_away(x: float) -> None:
    assert fp.round_half_away(x) == plain.round_half_away(x)


@given(st.one_of(near(0, 1 << 31).filter(lambda a: 0 <= a <= 1 << 31), st.integers(0, 1 << 31)), st.integers(0, 5))
def test_exponential(a: int, integer_bits: int) -> None:
    assert gemmlowp.exp_on_negative_values(-a, integer_bits) == plain.exponential(-a, integer_bits)


@given(st.one_of(near(2, (1 << 31) - 3), st.integers(0, (1 << 31) - 1)))
def test_reciprocal(a: int) -> None:
    assert gemmlowp.one_over_one_plus_x(a) == plain.reciprocal(a)


@pytest.mark.parametrize("found", [gemmlowp.reciprocal, gemmlowp.reciprocal_of_one])
@given(x=st.one_of(near(2, (1 << 31) - 2, (1 << 32) - 3), st.integers(1, (1 << 32) - 1)))
def test_reciprocal_of_a_sum(found: Callable, x: int) -> None:
    headroom = 32 - x.bit_length()
    mantissa, over_unit = found(x, 12)
    assert (mantissa, over_unit) == (plain.reciprocal((x << headroom) - (1 << 31)), 12 - headroom)

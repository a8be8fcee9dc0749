"""GAP9's primitives, one by one, against numbers worked out by hand, rational arithmetic and the real functions."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import exp, floor, tanh

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tflq.errors import UnsupportedError
from tflq.graph import Affine
from tflq.interpreter.kernels.gap9.expressions.formula import Formula
from tflq.interpreter.kernels.gap9.expressions.operators import Lowering, Value
from tflq.interpreter.kernels.gap9.expressions.tree import Symbol
from tflq.interpreter.kernels.gap9.linear import Rescaling
from tflq.interpreter.kernels.gap9.mul_bias import mul_bias, multiplier_bits
from tflq.interpreter.kernels.gap9.rounding import dequantize, quantize, round_half_up, shift_between
from tflq.interpreter.numerics.fixed_point import norm
from tflq.interpreter.numerics.q15 import exp_q15, sigmoid_q15, tanh_q15
from tflq.interpreter.numerics.requantize import requantize

RATIOS = st.floats(1e-6, 255.9)


def test_codes_round_half_up() -> None:
    assert round_half_up([-1.5, -0.5, 0.5, 1.5, 2.5]).tolist() == [-1.0, 0.0, 1.0, 2.0, 3.0]


@given(st.integers(-(1 << 40), 1 << 40), st.integers(0, 31))
def test_norm_is_rounded_division(x: int, n: int) -> None:
    assert norm(x, n) == floor(Fraction(x, 1 << n) + Fraction(1, 2))


@pytest.mark.parametrize("bits", [2, 8, 16])
@pytest.mark.parametrize("signed", [True, False])
def test_codes_come_back(bits: int, signed: bool) -> None:
    affine = Affine.per_tensor(0.37, 1 if signed else 2, bits, signed)
    codes = np.arange(affine.minimum_code, affine.maximum_code + 1)
    assert np.array_equal(quantize(dequantize(codes, affine), affine), codes)
    assert quantize([1e9, -1e9], affine).tolist() == [affine.maximum_code, affine.minimum_code]


@given(st.lists(RATIOS, min_size=1, max_size=8), st.integers(1, 8))
def test_multipliers_are_odd_and_near(ratios: list[float], bits: int) -> None:
    if max(ratios) >= 1 << (bits - 1):
        ratios = [r / 256 for r in ratios]
    found = mul_bias(ratios, bits)
    if set(ratios) == {1.0}:
        assert (found.multiplier.tolist(), found.shift.tolist()) == ([1], [0])
        return
    for ratio, m, n in zip(ratios, found.multiplier.tolist(), found.shift.tolist(), strict=True):
        assert 1 <= m <= 255
        assert 0 <= n <= 31
        assert m % 2 or n == 0
        if n <= 24 - 8:
            assert abs(m * 2.0**-n - ratio) <= ratio * 2.0**-bits * 1.01


@pytest.mark.parametrize(
    ("ratio", "multiplier", "shift"),
    [
        (1.0, 1, 0),
        (0.5, 1, 1),
        (0.0078125, 1, 7),
        (255.0, 255, 0),
        (0.085729, 11, 7),
        (2.0**-26, 1, 25),
        (1.5 * 2.0**-26, 1, 25),
    ],
)
def test_single_multipliers(ratio: float, multiplier: int, shift: int) -> None:
    found = mul_bias(ratio)
    assert (found.multiplier.tolist(), found.shift.tolist()) == ([multiplier], [shift])


@pytest.mark.parametrize(
    ("reduction", "bias", "bits"),
    [(9, 0, 13), (512, 0, 8), (513, 0, 7), (1025, 0, 6), (9, 1 << 24, 7), (9, 1 << 29, 2), (1 << 18, 0, -1)],
)
def test_bits_that_are_left(reduction: int, bias: int, bits: int) -> None:
    assert multiplier_bits(reduction, [bias]).tolist() == [bits]


@pytest.mark.parametrize(
    ("ratio", "bits", "words"),
    [
        (256.0, 8, "below 256"),
        (0.0, 8, "positive and finite"),
        (float("nan"), 8, "positive and finite"),
        (2.0**-33, 8, "shift above 31"),
        (0.1, -1, "no bit is left"),
        (3.0, 1, "too few bits left"),
    ],
)
def test_ratios_without_multiplier(ratio: float, bits: int, words: str) -> None:
    with pytest.raises(UnsupportedError, match=f"channel 1: .*{words}"):
        mul_bias([0.3, ratio], [8, bits])


def test_exponential_is_near_the_real_one() -> None:
    x = -np.arange(0, 12 << 15, 37)
    found = exp_q15(x)
    assert found[0] == 1 << 15
    real = np.array([exp(v / (1 << 15)) for v in x]) * (1 << 15)
    near = x > -(11 << 15)
    assert np.abs(found - real)[near].max() <= 6
    assert not found[~near].any()
    assert exp_q15(np.array([-1])) <= 1 << 15


def test_curves_are_near_the_real_ones() -> None:
    x = np.arange(-(1 << 16), 1 << 16, 13)
    # 256 entries over 255 / 24 without interpolation: half a step of the argument
    real = np.array([1 / (1 + exp(-v / 4096)) for v in x])
    assert np.abs(sigmoid_q15(x) / 32768 - real).max() < 0.25 / 24 + 2e-3
    real = np.array([tanh(v / 4096) for v in x])
    assert np.abs(tanh_q15(x) / 32768 - real).max() < 1 / 24
    assert sigmoid_q15(np.array([0])).tolist() == [16384]
    assert tanh_q15(np.array([0])).tolist() == [0]


@given(
    st.integers(2, 16),
    st.integers(0, 8),
    st.lists(st.tuples(RATIOS, st.integers(-(1 << 28), 1 << 28)), min_size=1, max_size=4),
    st.integers(0, 1 << 30),
)
def test_rescaling_by_any_way(bits: int, prenorm: int, channels: list[tuple[float, int]], seed: int) -> None:
    scales = mul_bias([2.0**-9 * r for r, _ in channels])
    prenorm = min(prenorm, int(scales.shift.min()))
    bias = np.array([b for _, b in channels])
    bound = np.full(len(bias), 1 << 29)
    output = Affine.per_tensor(1.0, 0, bits, seed % 2 == 0)
    made = Rescaling.create(bias, scales, prenorm, output)
    accumulators = np.random.default_rng(seed).integers(-(1 << 29), 1 << 29, (50, len(bias)))
    exact = made.exact(accumulators)
    for row, codes in zip(accumulators.tolist(), exact.tolist(), strict=True):
        for c, code in enumerate(codes):
            total = floor(Fraction(row[c] + int(bias[c]), 1 << prenorm) + Fraction(1, 2))
            n = int(scales.shift[c]) - prenorm
            y = floor(Fraction(total * int(scales.multiplier[c]), 1 << n) + Fraction(1, 2))
            assert code == min(max(y, output.minimum_code), output.maximum_code)
    codes = np.arange(output.minimum_code, output.maximum_code + 1, max(1, (1 << bits) // 256))[1:, None]
    least = made.reach(codes)
    within = np.abs(least) < 1 << 40
    assert np.all((made.exact(least) >= codes) & (made.exact(least - 1) < codes) | ~within)
    assert within.any()
    fitted = made.fit_map(-bound, bound)
    assert np.array_equal(requantize(fitted, made.exact, accumulators, np.dtype(np.int32)), exact)


@pytest.mark.parametrize("scales", [(1.0, 1.0), (0.5, 3.0), (2.0, 0.25)])
def test_the_bounds_of_a_product_hold_every_product(scales: tuple[float, float]) -> None:
    """Of two bytes of 7 fractional bits; a later sum takes its range from them."""
    byte = Formula("input", (), (0, -128, 127))
    a, b = (Value(byte, scale, 7, (-scale, scale)) for scale in scales)
    found = Lowering(as_nntool=False).lower_symbol(Symbol("mul"), [a, b])
    assert found.bounds is not None
    steps = np.arange(-127, 128) / 128
    every = np.outer(steps * scales[0], steps * scales[1])
    assert found.bounds[0] <= every.min()
    assert found.bounds[1] >= every.max()
    assert found.unit * 2.0**found.q == scales[0] * scales[1]
    quotient = Lowering(as_nntool=False).lower_symbol(Symbol("div"), [a, b])
    assert quotient.bounds == (-scales[0] / scales[1], scales[0] / scales[1])


@pytest.mark.parametrize(("off", "shift"), [(0.0, 8), (0.9e-4, 8), (-0.9e-4, 8), (1.1e-4, 0), (-1.1e-4, 0)])
def test_two_widths_whose_scales_count_as_one(off: float, shift: int) -> None:
    """|S_8 - 256 S_16| <= 1e-4, zero points 0, both signed (docs/differences/gap9.md)."""
    wide = Affine.per_tensor(np.float64(0.5 / 256), 0, 16, signed=True)
    narrow = Affine.per_tensor(np.float64(0.5 + off), 0, 8, signed=True)
    assert (shift_between(narrow, wide), shift_between(wide, narrow)) == (shift, -shift)
    for other in (replace(narrow, zero_point=np.array([1])), replace(narrow, signed=False)):
        assert (shift_between(other, wide), shift_between(wide, other)) == (0, 0)

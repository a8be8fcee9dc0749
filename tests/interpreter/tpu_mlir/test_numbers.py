"""Roundings and multipliers against rational arithmetic and the printed example; the proven maps against their rule."""

from __future__ import annotations

import math
from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tflq.errors import UnsupportedError
from tflq.graph import Affine, DType, GraphBuilder
from tflq.interpreter import Engine, lower
from tflq.interpreter.kernels.tpu_mlir.activations import by_c_library
from tflq.interpreter.kernels.tpu_mlir.linear import FilterParams
from tflq.interpreter.kernels.tpu_mlir.multiplier import (
    find_multiplier,
    find_normalized_multiplier,
    shift_half_away,
    shift_half_up,
)
from tflq.interpreter.numerics.fixed_point import round_half_away
from tflq.interpreter.numerics.requantize import fit_step_map

HALF = Fraction(1, 2)


@given(st.integers(-(1 << 40), 1 << 40), st.integers(-8, 40))
def test_shifts(x: int, shift: int) -> None:
    exact = Fraction(x) / Fraction(2) ** shift
    assert int(shift_half_up(x, shift)) == floor(exact + HALF)
    away = floor(abs(exact) + HALF) * (1 if exact >= 0 else -1)
    assert int(shift_half_away(x, shift)) == away


@given(st.floats(2.0**-20, 2.0**6), st.sampled_from([(8, -32), (8, 0), (32, -32)]))
def test_search_finds_the_first_of_the_nearest(scale: float, how: tuple[int, int]) -> None:
    bits, lowest = how
    wanted = Fraction(float(np.float32(scale)))
    limit = 127 if bits == 8 else (1 << 31) - 1
    best = None
    for n in range(lowest, 31):
        m = floor(wanted * Fraction(2) ** n + HALF)
        if m >= limit:
            break
        error = np.abs(np.float32(float(Fraction(m) / Fraction(2) ** n)) - np.float32(scale))
        if best is None or error < best[0]:
            best = (error, m, n)
    assert best is not None
    if best[1] == 0:
        with pytest.raises(UnsupportedError, match="no multiplier of"):
            find_multiplier(scale, bits, lowest)
        return
    found = find_multiplier(scale, bits, lowest)
    assert (int(found.multiplier[0]), int(found.shift[0])) == best[1:]


def test_multipliers_are_not_normalized() -> None:
    found = find_multiplier([0.5, 2.008, 64.0], 8, 0)
    assert list(zip(found.multiplier.tolist(), found.shift.tolist(), strict=True)) == [(1, 1), (2, 0), (64, 0)]
    assert find_multiplier(1024.0, 8).shift[0] < 0


def test_the_manuals_example() -> None:
    found = find_normalized_multiplier([0.1234, 1 - 2.0**-40], 32)
    assert (int(found.multiplier[0]), int(found.shift[0])) == (2119995857, 34)
    assert (int(found.multiplier[1]), int(found.shift[1])) == (1 << 30, 30)  # 2^31 needs 33 bits


@pytest.mark.parametrize("scale", [0.0, -1.0, np.inf, np.nan, 1e300, 1e-30])
@pytest.mark.parametrize("find", [find_multiplier, find_normalized_multiplier])
def test_scales_without_a_multiplier(find, scale: float) -> None:
    with pytest.raises(UnsupportedError, match=r"channel 1: the ratio of scales is") as caught:
        find([0.5, scale], 8)
    assert "\n" not in str(caught.value)


@given(
    st.lists(st.floats(2.0**-12, 0.5), min_size=1, max_size=4),
    st.integers(-128, 127),
    st.integers(-5000, 5000),
    st.booleans(),
)
def test_proven_maps_equal_the_rule(scales: list[float], zero_point: int, bias: int, signed: bool) -> None:
    count = len(scales)
    low, high = (-128, 127) if signed else (0, 255)
    zero_point = zero_point if signed else 0
    rescale = find_multiplier(scales, 32)
    biases = np.full(count, bias, np.int64)
    rule = FilterParams(np.zeros((count, 1), np.int64), biases, rescale, 0, zero_point, low, high, np.dtype(np.int16))
    edge = np.full(count, 20000, np.int64)
    slope = rescale.multiplier * np.exp2(-rescale.shift.astype(np.float64))
    fitted = fit_step_map(rule.exact, slope, biases + zero_point / slope, -edge, edge, zero_point, low, high)
    assert fitted is not None
    accumulators = np.arange(-20000, 20001)[:, None].repeat(count, axis=1)
    mapped = FilterParams(rule.weights, biases, rescale, 0, zero_point, low, high, rule.dtype, fitted)
    assert np.array_equal(mapped.finish(accumulators.astype(np.float32)), rule.exact(accumulators))


def test_ties_round_away_from_zero() -> None:
    assert round_half_away([-1.5, -0.5, 0.5, 1.5, 0.49999999999999994]).tolist() == [-2, -1, 1, 2, 0]


def test_tables_follow_the_c_library() -> None:
    """tanh(19.0016) is the number below 1 there, so that 127.5 steps of it are no tie; numpy's is 1."""
    x = np.array([[19.0016, -19.0016], [0.5, 800.0]])
    assert by_c_library(math.tanh)(x).tolist() == [[math.tanh(v) for v in row] for row in x.tolist()]
    assert by_c_library(math.exp)(x)[1, 1] == math.inf


def test_a_sum_whose_multiplier_needs_no_shift() -> None:
    b = GraphBuilder()
    x, y = (b.input(name, (3,), DType.INT8, Affine.per_tensor(np.float32(1), 0, 8)) for name in "xy")
    graph = b.build([b.add("add", [x, y], (3,), DType.INT8, Affine.per_tensor(np.float32(0.01), 0, 8))])
    codes = np.array([[0, 1, -1]], np.int8)
    assert Engine(lower(graph, "tpu_mlir")).run([codes, codes * 0])[graph.outputs[0]].tolist() == [[0, 100, -100]]

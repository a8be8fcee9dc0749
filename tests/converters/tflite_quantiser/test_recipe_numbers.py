"""Scales and quantized values of recipes, where float32 and its order of operations decide."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tflq.converters.tflite_quantiser.recipes.columns import scaled, spread
from tflq.converters.tflite_quantiser.recipes.params import (
    Params,
    bias,
    bounds_of_codes,
    from_bounds,
    grown,
    hadamard,
    quantised,
    rotated,
    weights_of,
)
from tflq.converters.tflite_quantiser.recipes.rules import MIN_MAX, MSE, OCTAV, Widths
from tflq.errors import UnsupportedError

F32 = np.float32
Reals = NDArray[np.float32]
CHANNELS = Widths(8, granularity="CHANNELWISE")


def reals(*values: float) -> Reals:
    return np.array(values, np.float32)


def codes(values: Reals, params: Params) -> list[int]:
    return np.asarray(quantised(values, params).data).tolist()


def test_the_difference_of_a_range_rounds_to_float32() -> None:
    draw = np.random.default_rng(4)
    ends = draw.normal(size=(1000, 2)).astype(np.float32)
    scales = from_bounds((-np.abs(ends[:, 0]), np.abs(ends[:, 1])), Widths(8, symmetric=False)).scale
    exact = ((np.abs(ends[:, 1]).astype(np.float64) + np.abs(ends[:, 0])) / 255).astype(np.float32)
    assert 0 < np.count_nonzero(scales != exact) < 500  # one rounding more than TFLite's own quantiser has


def test_halves_go_to_even_and_int4_keeps_its_smallest() -> None:
    unit = Params(reals(1.0), np.zeros(1, np.int32), Widths(8))
    assert codes(reals(0.5, 1.5, -2.5, 200, -200), unit) == [0, 2, -2, 127, -127]
    narrow = Params(reals(1.0), np.zeros(1, np.int32), Widths(4))
    assert codes(reals(-9, 9), narrow) == [-8, 7]


def test_zeros() -> None:
    found = weights_of(np.zeros((2, 3), np.float32), CHANNELS, 0, MIN_MAX)
    assert found.scale.tolist() == [[F32(1e-9) / F32(127)]] * 2
    assert weights_of(np.zeros((2, 32), np.float32), Widths(4, granularity="BLOCKWISE_32"), 0, MIN_MAX).scale.max() == 0


def test_ranges_behind_a_demanded_scale_are_float64() -> None:
    softmax = Params(np.asarray(2.0**-8), np.asarray(-128), Widths(8, symmetric=False))
    bounds = bounds_of_codes(softmax)
    assert [bound.item() for bound in bounds] == [0.0, 255 / 256]
    assert softmax.is_like(from_bounds(bounds, Widths(8, symmetric=False)))
    tanh = Params(np.asarray(2.0**-15), np.asarray(0), Widths(16))
    assert [bound.item() for bound in bounds_of_codes(tanh)] == [-32767 / 32768, 32767 / 32768]


def test_a_bias_has_the_product_of_both_scales() -> None:
    one, two = (from_bounds((reals(-x), reals(x)), Widths(8)) for x in (0.3, 0.7))
    found = bias(reals(1.0, -2.0), one, two)
    assert found.scale.tolist() == [one.scale[0] * two.scale[0]]
    assert found.widths.bits == 32
    wide = bias(reals(1.0), from_bounds((reals(-1), reals(1)), Widths(16)), two)
    assert (wide.widths.bits, np.asarray(wide.data).dtype) == (64, np.int64)


def test_scales_grow_for_a_bias_of_more_than_32_bits() -> None:
    values = np.array([[0, 0], [1, -0.5], [2, 1]], np.float32)
    weights, input_ = weights_of(values, CHANNELS, 0, MIN_MAX), from_bounds((reals(-1), reals(1)), Widths(8))
    assert grown(values, reals(0, 1, -1), input_, weights) is None
    found = grown(values, reals(5, 1, -1), input_, weights)
    assert found is not None
    assert np.array_equal(found.scale[1:], weights.scale[1:])
    data = np.asarray(bias(reals(5, 1, -1), input_, found).data)
    assert abs(int(data[0]) - 2**30) < 2**10
    assert found.data is not None
    assert not found.data[0].any()


@pytest.mark.parametrize("bits", [4, 8])
def test_algorithms_err_less_than_the_largest_magnitude(bits: int) -> None:
    values = np.random.default_rng(bits).normal(size=(3, 4096)).astype(np.float32)
    widths = Widths(bits, granularity="CHANNELWISE")
    errors = []
    for algorithm in (MIN_MAX, MSE, OCTAV):
        found = weights_of(values, widths, 0, algorithm)
        assert found.data is not None
        errors.append(float(np.square(found.data * found.scale - values).mean()))
    least_error, clipping = errors[1] / errors[0], errors[2] / errors[0]
    assert clipping <= 1
    assert least_error < (1 if bits == 4 else 4)  # its step for 8 bits is not the best for a normal density


def test_rotations() -> None:
    matrix = hadamard(8).astype(int)
    assert (matrix @ matrix.T == 8 * np.eye(8, dtype=int)).all()
    values = np.random.default_rng(1).normal(size=(4, 24)).astype(np.float32)
    found = rotated(values, CHANNELS, 0)
    assert found.rotation == 8
    assert found.data is not None
    back = (found.data * found.scale).reshape(-1, 8) @ (matrix / np.sqrt(8))
    assert np.abs(back.reshape(4, 24) - values).max() < 0.05
    assert rotated(values, Widths(8, granularity="CHANNELWISE", most_rotated=5), 0).rotation == 4
    with pytest.raises(UnsupportedError, match="rows have 7 weights"):
        rotated(values[:, :7], CHANNELS, 0)


@pytest.mark.parametrize(
    ("algorithm", "widths", "message"),
    [
        (MSE, Widths(2, granularity="CHANNELWISE"), "MSE has weights of 8 or 4 bits"),
        (MSE, Widths(4, granularity="BLOCKWISE_32"), "not in blocks"),
        (OCTAV, Widths(8, symmetric=False), "symmetric weights only"),
        (MIN_MAX, Widths(4, granularity="BLOCKWISE_64"), "blocks of 64 do not divide"),
    ],
)
def test_refusals(algorithm: str, widths: Widths, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        weights_of(np.ones((2, 32), np.float32), widths, 0, algorithm)


def correlated() -> tuple[Reals, ...]:
    """Return weights [8, 64] and an input [500, 64] whose columns differ in size and depend on each other."""
    draw = np.random.default_rng(3)
    mixed = draw.normal(size=(500, 64)) @ draw.normal(size=(64, 64)) * np.exp(draw.normal(size=64))
    return draw.normal(size=(8, 64)).astype(np.float32), mixed.astype(np.float32)


def lost(weights: Reals, x: Reals, found: Params) -> float:
    back = np.asarray(found.data) * np.repeat(found.scale, found.widths.block_size or 1, axis=-1)
    scaled_x = x if found.multiplier is None else x * found.multiplier
    return float(np.square(scaled_x @ back.T - x @ weights.T).mean())


@pytest.mark.parametrize("granularity", ["CHANNELWISE", "TENSORWISE", "BLOCKWISE_32"])
@pytest.mark.parametrize("bits", [4, 8])
def test_what_knows_the_input_loses_less(bits: int, granularity: str) -> None:
    weights, x = correlated()
    widths = Widths(bits, granularity=granularity)
    largest = lost(weights, x, weights_of(weights, widths, 0, MIN_MAX))
    hessian = 2.0 / len(x) * x.astype(np.float64).T @ x
    assert lost(weights, x, spread(weights, widths, 0, hessian)) < largest
    alone = x.std(axis=0) * np.random.default_rng(4).normal(size=x.shape).astype(
        np.float32
    )  # OSCAR takes them for that
    moments = np.square(alone, dtype=np.float64).mean(axis=0)
    plain = lost(weights, alone, weights_of(weights, widths, 0, MIN_MAX))
    if granularity != "TENSORWISE":  # its columns are scaled for the largest weight of each row
        assert lost(weights, alone, scaled(weights, widths, moments)) < plain
    unknown = scaled(weights, widths, None)
    assert unknown.multiplier is not None
    assert (unknown.multiplier == 1).all()


def test_a_hessian_stays_damped_for_the_next_layer() -> None:
    weights, x = correlated()
    hessian = np.asarray(x.astype(np.float64).T @ x)
    diagonal = np.diag(hessian).copy()
    spread(weights, CHANNELS, 0, hessian)
    assert np.array_equal(np.diag(hessian), diagonal + 0.01 * diagonal.mean())


def test_statistics_of_other_layers_are_refused() -> None:
    weights, _ = correlated()
    with pytest.raises(UnsupportedError, match=r"Hessian of shape \(3, 3\) for weights of shape \(8, 64\)"):
        spread(weights, CHANNELS, 0, np.eye(3))
    with pytest.raises(UnsupportedError, match="moments of 3 columns, its rows have 64"):
        scaled(weights, CHANNELS, np.ones(3))

"""StepMap: equal to the exact rule on every accumulator of its range, not only on drawn ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import kernel_settings
from tflq.interpreter.layout import is_samples_last, to_samples_last
from tflq.interpreter.numerics.fixed_point import multiply_by_quantized_multiplier, quantize_multiplier, round_half_away
from tflq.interpreter.numerics.requantize import fit_step_map, requantize

INT8 = np.dtype(np.int8)
REACH = 1 << 15


def double_rounding(scale, bias, zero_point, low=-128, high=127):
    multiplier, shift = quantize_multiplier(scale)

    def exact(acc):
        return np.clip(multiply_by_quantized_multiplier(acc + bias, multiplier, shift) + zero_point, low, high)

    return exact


def half_away_of_a_product(scale, bias, zero_point, low=-128, high=127):
    return lambda acc: np.clip(round_half_away((acc + bias) * scale).astype(np.int64) + zero_point, low, high)


def half_up_shift(scale, bias, zero_point, low=-128, high=127):
    """GAP9's rule: (acc * M + 2^(N-1)) >> N."""
    n = 12
    m = (scale * 2**n).astype(np.int64)
    return lambda acc: np.clip((((acc + bias) * m + (1 << (n - 1))) >> n) + zero_point, low, high)


def at_once(fitted):
    """Let float32 serve from the first accumulator on."""
    assert fitted is not None
    fitted.served = 1 << 62
    return fitted


def half_even_shift(scale, bias, zero_point, low=-128, high=127):
    """AIPU's rule: rint(acc * M * 2^-N); scales of twelve bits have ties."""
    return lambda acc: np.clip(np.rint((acc + bias) * scale).astype(np.int64) + zero_point, low, high)


RULES = [double_rounding, half_away_of_a_product, half_up_shift]


@pytest.mark.parametrize("rule", RULES)
@kernel_settings
@given(seed=st.integers(0, 2**32 - 1), zero_point=st.sampled_from([-128, -127, -5, 0, 60, 127]))
def test_equal_on_every_accumulator(rule, seed, zero_point):
    rng = np.random.default_rng(seed)
    channels = int(rng.integers(1, 9))
    scale = rng.integers(1, 2**14, channels) / 2**12
    bias = rng.integers(-5000, 5000, channels)
    lower, upper = -rng.integers(1, REACH, channels), rng.integers(1, REACH, channels)
    exact = rule(scale, bias, zero_point)
    fitted = fit_step_map(exact, scale, bias, lower, upper, zero_point, -128, 127)
    every = np.arange(-REACH, REACH)[:, None]
    inside = np.clip(every, lower, upper)
    got = requantize(fitted, exact, inside.astype(np.float32), INT8)
    assert np.array_equal(got, exact(inside))
    assert fitted.in_float64 is not None
    at_once(fitted)
    got = requantize(fitted, exact, inside.astype(np.float32), INT8)
    assert np.array_equal(got, exact(inside))
    images = inside.reshape(64, 1, 32, 32, channels)
    got = requantize(fitted, exact, to_samples_last(images.astype(np.float32)), INT8)
    assert is_samples_last(got)
    assert np.array_equal(got, exact(images))
    for some in np.array_split(inside, 128):
        assert np.array_equal(requantize(fitted, exact, some.astype(np.float32), INT8), exact(some))


@pytest.mark.parametrize("zero_point", [-128, 3])
def test_exceptions_of_float32_are_put_right(zero_point, quick):
    """Fine steps at large quantized values are where float32 misses a threshold.

    Every accumulator near one is compared; in the quick tier those of every fourth block.
    """
    rng = np.random.default_rng(1)
    channels = 64
    scale, bias = rng.uniform(8e-4, 2e-3, channels), rng.integers(-50000, 50000, channels)
    lower, upper = np.full(channels, -(2**19)), np.full(channels, 2**19)
    exact = double_rounding(scale, bias, zero_point)
    fitted = at_once(fit_step_map(exact, scale, bias, lower, upper, zero_point, -128, 127))
    assert fitted.best.scale.dtype == np.float32
    assert fitted.best.exceptions
    for start in range(-(2**19), 2**19, 2**18 if quick else 2**16):
        every = np.arange(start, start + 2**16)[:, None]
        wanted = exact(every + np.zeros(channels, np.int64))
        got = requantize(fitted, exact, (every + np.zeros(channels)).astype(np.float32), INT8)
        assert np.array_equal(got, wanted)


@pytest.mark.parametrize("reach", [2**24 - 3, 2**24 - 2])
def test_float32_ends_where_it_no_longer_counts(reach):
    one = np.array([1])
    exact = double_rounding(np.array([1e-7]), np.array([0]), 0)
    fitted = fit_step_map(exact, np.array([1e-7]), np.array([0]), -reach * one, reach * one, 0, -128, 127)
    assert fitted is not None
    assert (fitted.best.scale.dtype == np.float32) == (reach + 2 < 2**24)


@pytest.mark.parametrize("zero_point", [-128, 3])
@pytest.mark.parametrize("guess", [0.25, 1.0, 4.0])
def test_a_bad_guess_of_the_offset_costs_time_only(zero_point, guess):
    """Thresholds are found by bisection where the guess is off."""
    scale, bias = np.array([0.01, 0.3]), np.array([700, -3])
    lower, upper = np.array([-9000, -500]), np.array([9000, 500])
    exact = double_rounding(scale, bias, zero_point)
    fitted = fit_step_map(exact, scale, bias + 1000 * guess, lower, upper, zero_point, -128, 127)
    assert fitted is not None
    every = np.clip(np.arange(-9000, 9001)[:, None], lower, upper)
    assert np.array_equal(requantize(fitted, exact, every.astype(np.float64), INT8), exact(every))


def test_a_map_that_is_off_by_one_accumulator_does_not_pass():
    """The proof itself: a rule whose threshold lies elsewhere than any affine map can put it is not fitted."""
    scale, bias = np.array([1.0]), np.array([0])

    def crooked(acc):
        return np.clip(np.where(acc >= 40, acc + 3, np.where(acc >= 20, acc - 5, acc)), -128, 127)

    lower, upper = np.array([-200]), np.array([200])
    fitted = fit_step_map(crooked, scale, bias, lower, upper, 0, -128, 127)
    assert fitted.in_float64 is None
    assert fitted.best is None
    every = np.arange(-200, 201)[:, None]
    for maps in (None, fitted):
        assert np.array_equal(requantize(maps, crooked, every, INT8), crooked(every))


def test_channels_that_never_change():
    """A multiplier of 0, a range of one accumulator, and a clamp to one quantized value."""
    scale, bias = np.array([1e-30, 0.5, 0.5]), np.array([5, 10, 10**6])
    lower, upper = np.array([-1000, 7, -1000]), np.array([1000, 7, 1000])
    for zero_point in (-128, 0, 90):
        exact = double_rounding(scale, bias, zero_point)
        fitted = fit_step_map(exact, scale, bias, lower, upper, zero_point, -128, 127)
        assert fitted is not None
        every = np.clip(np.arange(-1000, 1001)[:, None], lower, upper)
        assert np.array_equal(requantize(fitted, exact, every.astype(np.float32), INT8), exact(every))


def test_a_clamp_to_one_code():
    scale, bias, one = np.array([0.5]), np.array([0]), np.array([1])
    exact = double_rounding(scale, bias, 0, 4, 4)
    fitted = fit_step_map(exact, scale, bias, -100 * one, 100 * one, 0, 4, 4)
    assert fitted is not None
    assert set(requantize(fitted, exact, np.arange(-100.0, 101.0)[:, None], INT8).flat) == {4}


@pytest.mark.parametrize(
    ("scale", "lower", "upper", "maximum"),
    [
        (-1.0, -10, 10, 127),
        (np.nan, -10, 10, 127),
        (1.0, -10, 10, 32767),
        (1.0, -(2**53), 10, 127),
        (1.0, -10, 2**53, 127),
    ],
)
def test_what_is_not_fitted(scale, lower, upper, maximum):
    def never(acc):
        raise AssertionError("not asked")

    one = np.array([1])
    assert fit_step_map(never, np.array([scale]), one, lower * one, upper * one, 0, -128, maximum) is None


@pytest.mark.parametrize("shape", [(1, 7), (3, 5, 7), (1000, 7), (40000, 1), (3, 50000), (0, 7)])
def test_blocks_and_tails(shape):
    channels = shape[-1]
    scale, bias = np.linspace(0.001, 0.01, channels), np.arange(channels)
    lower, upper = np.full(channels, -20000), np.full(channels, 20000)
    exact = double_rounding(scale, bias, -7)
    few = slice(0, min(channels, 8))
    fitted = fit_step_map(exact, scale, bias, lower, upper, -7, -128, 127) if channels < 10 else None
    acc = np.random.default_rng(0).integers(-20000, 20000, shape)
    for step_map in (fitted, None):
        got = requantize(step_map, exact, acc.astype(np.float32), INT8)
        assert got.shape == shape
        assert np.array_equal(got[..., few], exact(acc)[..., few])


def test_the_map_proves_itself_on_the_bounds_of_float64():
    """Accumulators just inside 2^52 with a scale that spreads 256 quantized values over all of them."""
    top = (1 << 52) - 1
    scale = np.array([120 / top])
    exact = half_away_of_a_product(scale, np.array([0]), 0)
    fitted = fit_step_map(exact, scale, np.array([0]), np.array([-top]), np.array([top]), 0, -128, 127)
    if fitted.best is not None:
        acc = np.random.default_rng(0).integers(-top, top, (100000, 1))
        assert np.array_equal(requantize(fitted, exact, acc, INT8), exact(acc))
        assert np.array_equal(fitted.best.rounded(acc), exact(acc))


def nearly_constant(zero_point):
    """63 ordinary channels and one of each kind that float32 cannot place: constant, one change, four changes."""
    rng = np.random.default_rng(3)
    scale, bias = rng.uniform(1e-3, 2e-3, 67), rng.integers(-50000, 50000, 67)
    scale[[3, 20, 40, 66]] = 1e-13, 1.4e-7, 1.4e-6, 0.0
    bias[20], bias[40] = round((-120.5 - zero_point) / 1.4e-7), round((3 - zero_point) / 1.4e-6)
    reach = np.full(67, 600_000)
    return double_rounding(scale, bias, zero_point), scale, bias, -reach, reach


@pytest.mark.parametrize("zero_point", [-128, -127, 3, 127])
def test_nearly_constant_channels_leave_the_others_in_float32(zero_point):
    exact, scale, bias, lower, upper = nearly_constant(zero_point)
    fitted = at_once(fit_step_map(exact, scale, bias, lower, upper, zero_point, -128, 127))
    assert fitted.best.scale.dtype == np.float32
    rng = np.random.default_rng(4)
    near = np.concatenate([fitted.steps().thresholds + d for d in (-2, -1, 0, 1)])
    acc = np.clip(np.concatenate([near, rng.integers(lower, upper, (1000, 67))]), lower, upper)
    assert np.array_equal(requantize(fitted, exact, acc.astype(np.float32), INT8), exact(acc))
    images = np.resize(acc, (32, 1, 16, 16, 67))
    got = requantize(fitted, exact, to_samples_last(images.astype(np.float32)), INT8)
    assert np.array_equal(got, exact(images))


def test_changes_are_listed_for_channels_of_few_thresholds():
    exact, scale, bias, lower, upper = nearly_constant(-128)
    best = fit_step_map(exact, scale, bias, lower, upper, -128, -128, 127).best
    assert 20 in {channel for channel, _, _ in best.changes}
    assert best.wide is not None


def test_float32_comes_once_it_pays():
    scale, bias, one = np.array([0.01]), np.array([3]), np.array([1])
    exact = double_rounding(scale, bias, 0)
    fitted = fit_step_map(exact, scale, bias, -9000 * one, 9000 * one, 0, -128, 127)
    types = [fitted.serving(4000).scale.dtype for _ in range(6)]
    assert types == [np.float64] * 4 + [np.float32] * 2


@pytest.mark.parametrize("zero_point", [0, 4, 3, -128])
@pytest.mark.parametrize("scale", [0.5, 0.25, 0.375, 2.5, 1.0])
def test_ties_to_even_leave_one_offset(scale, zero_point):
    """Both neighbors of a tie bind the offset from either side; behind some zero points they need the rule itself."""
    one = np.array([1])
    exact = half_even_shift(scale * one, 7 * one, zero_point)
    fitted = at_once(fit_step_map(exact, scale * one, 7 * one, -2000 * one, 2000 * one, zero_point, -128, 127))
    assert zero_point or fitted.best.scale.dtype == np.float32
    every = np.arange(-2000, 2001)[:, None]
    assert np.array_equal(requantize(fitted, exact, every.astype(np.float32), INT8), exact(every))

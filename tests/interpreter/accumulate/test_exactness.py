"""Accumulators against sums in Python's unbounded integers, and at the bounds where a type stops being exact."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import kernel_settings, seeds
from tflq.errors import GraphError
from tflq.interpreter.accumulate import (
    accumulate_convolution,
    accumulate_depthwise,
    accumulate_product,
    accumulate_samples_last,
    accumulator_range,
    can_run_samples_last,
    exact_dtype,
    prepare_convolution,
    prepare_depthwise,
    prepare_product,
    window_counts,
    window_maxima,
    window_sums,
)
from tflq.interpreter.accumulate.convolution import ROW_PATCH
from tflq.interpreter.layout import is_samples_last, to_samples_last
from tflq.interpreter.operands.sliding_windows import Window


@st.composite
def windows(draw: st.DrawFn) -> Window:
    def pair(high: int) -> tuple[int, int]:
        return draw(st.integers(1, high)), draw(st.integers(1, high))

    return Window(pair(4), pair(3), pair(2), *(draw(st.integers(0, 3)) for _ in range(4)))


def taps_of(window, x, pad_value):
    """Every patch as Python objects: [B, OH, OW, KH, KW, C]."""
    top, bottom, left, right = window.padding
    image = np.pad(x.astype(object), ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=pad_value)
    height, width = window.output_size(x.shape[1:3])
    return np.stack(
        [
            np.stack(
                [
                    image[
                        :,
                        i * window.stride[0] : i * window.stride[0] + window.extent[0] : window.dilation[0],
                        j * window.stride[1] : j * window.stride[1] + window.extent[1] : window.dilation[1],
                    ]
                    for j in range(width)
                ],
                axis=1,
            )
            for i in range(height)
        ],
        axis=1,
    )


def image_for(window, rng, channels, low, high):
    size = [window.extent[a] + int(rng.integers(0, 6)) for a in (0, 1)]
    return rng.integers(low, high, (3, *size, channels), endpoint=True)


def assert_samples_last_equal(prepared, x, pad, expected):
    """Where a convolution runs over samples last, it gives the same and keeps that order in memory."""
    if not can_run_samples_last(prepared, x.shape[1:3]):
        return
    for samples in (x[:, None], x.reshape(1, *x.shape).repeat(2, axis=0)):
        got = accumulate_samples_last(prepared, to_samples_last(samples), pad)
        assert is_samples_last(got)
        assert (got.reshape(-1, *expected.shape)[0] == expected).all()


@pytest.mark.parametrize(("low", "high"), [(-128, 127), (0, 255), (-32768, 32767)])
@kernel_settings
@given(window=windows(), seed=seeds, groups=st.integers(1, 3), depth=st.integers(1, 4), each=st.integers(1, 4))
def test_convolution(low, high, window, seed, groups, depth, each):
    rng = np.random.default_rng(seed)
    x = image_for(window, rng, depth * groups, low, high)
    weights = rng.integers(-128, 127, (groups * each, *window.kernel, depth), endpoint=True)
    pad = int(rng.integers(low, high))
    prepared = prepare_convolution(weights, window, groups, max(-low, high))
    got = accumulate_convolution(prepared, x[:, None], pad)[:, 0]
    assert_samples_last_equal(prepared, x, pad, got)
    seen = taps_of(window, x, pad)
    for o in range(groups * each):
        group = slice(o // each * depth, (o // each + 1) * depth)
        expected = (seen[..., group] * weights[o].astype(object)).sum(axis=(3, 4, 5))
        assert (got[..., o] == expected).all()


@kernel_settings
@given(window=windows(), seed=seeds, groups=st.integers(1, 2), depth=st.integers(11, 40))
def test_many_channels(window, seed, groups, depth):
    """Where the kernel's rows are multiplied one by one, and where not."""
    rng = np.random.default_rng(seed)
    x = image_for(window, rng, depth * groups, -128, 127)
    weights = rng.integers(-128, 127, (groups * 2, *window.kernel, depth), endpoint=True)
    prepared = prepare_convolution(weights, window, groups, 128)
    assert prepared.adds_rows == (
        window.kernel[0] > 1 and window.stride[0] == 1 and window.kernel[1] * depth >= ROW_PATCH
    )
    got = accumulate_convolution(prepared, x[:, None], 9)[:, 0]
    assert_samples_last_equal(prepared, x, 9, got)
    seen = taps_of(window, x, 9)
    for o in range(groups * 2):
        group = slice(o // 2 * depth, (o // 2 + 1) * depth)
        assert (got[..., o] == (seen[..., group] * weights[o].astype(object)).sum(axis=(3, 4, 5))).all()


@kernel_settings
@given(
    kernel=st.tuples(st.integers(1, 4), st.integers(1, 5)),
    stride=st.tuples(st.integers(1, 2), st.integers(1, 3)),
    width=st.integers(1, 24),
    depth=st.integers(1, 3),
    outputs=st.integers(1, 12),
    seed=seeds,
)
def test_outputs_that_share_a_patch(kernel, stride, width, depth, outputs, seed):
    """Narrow images: the width is known beforehand, and neighboring outputs are computed together."""
    rng = np.random.default_rng(seed)
    window = Window(kernel, stride, (1, 1), 1, 1, 2, 0)
    size = (kernel[0] + 3, max(1, (width - 1) * stride[1] + kernel[1] - 2))
    width = window.output_size(size)[1]
    x = rng.integers(-128, 127, (2, *size, depth), endpoint=True)
    weights = rng.integers(-128, 127, (outputs, *kernel, depth), endpoint=True)
    prepared = prepare_convolution(weights, window, 1, 128, width)
    assert width % prepared.block == 0
    got = accumulate_convolution(prepared, x[:, None], -5)[:, 0]
    assert_samples_last_equal(prepared, x, -5, got)
    seen = taps_of(window, x, -5)
    for o in range(outputs):
        assert (got[..., o] == (seen * weights[o].astype(object)).sum(axis=(3, 4, 5))).all()


@kernel_settings
@given(window=windows(), seed=seeds, channels=st.integers(1, 9), multiplier=st.integers(1, 3))
def test_depthwise(window, seed, channels, multiplier):
    rng = np.random.default_rng(seed)
    x = image_for(window, rng, channels, -128, 127)
    weights = rng.integers(-128, 127, (*window.kernel, channels * multiplier), endpoint=True)
    got = accumulate_depthwise(prepare_depthwise(weights, window, multiplier, 128), x[:, None], -11)[:, 0]
    seen = np.repeat(taps_of(window, x, -11), multiplier, axis=-1)
    assert (got == (seen * weights.astype(object)).sum(axis=(3, 4))).all()


@kernel_settings
@given(
    kernel=st.tuples(st.integers(1, 5), st.integers(1, 4)),
    stride=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    dilation=st.integers(1, 2),
    padding=st.lists(st.integers(0, 3), min_size=4, max_size=4),
    seed=seeds,
    channels=st.integers(2, 9),
)
def test_depthwise_with_samples_last(kernel, stride, dilation, padding, seed, channels):
    rng = np.random.default_rng(seed)
    window = Window(kernel, stride, (1, dilation), *padding)
    x = image_for(window, rng, channels, -128, 127)
    weights = rng.integers(-128, 127, (channels, *kernel, 1), endpoint=True)
    prepared = prepare_convolution(weights, window, channels, 128)
    assert can_run_samples_last(prepared, x.shape[1:3])
    expected = (taps_of(window, x, 7) * np.moveaxis(weights[..., 0], 0, -1).astype(object)).sum(axis=(3, 4))
    assert_samples_last_equal(prepared, x, 7, expected)


@kernel_settings
@given(window=windows(), seed=seeds)
def test_pools(window, seed):
    rng = np.random.default_rng(seed)
    x = image_for(window, rng, 3, -128, 127)
    seen = taps_of(window, x, None)
    inside = np.not_equal(seen, None)
    assert (window_counts(window, x.shape[1:3]) == inside[0, ..., 0].sum(axis=(2, 3))).all()
    sums = np.where(inside, seen, 0).sum(axis=(3, 4))
    assert (window_sums(window, x[:, None].astype(np.int8), 128)[:, 0] == sums).all()
    maxima = np.where(inside, seen, -128).max(axis=(3, 4))
    assert (window_maxima(window, x[:, None].astype(np.int8), -128)[:, 0] == maxima).all()


@pytest.mark.parametrize(
    ("magnitude", "expected"),
    [
        (0, np.float32),
        (2**24 - 1, np.float32),
        (2**24, np.float64),
        (2**53 - 1, np.float64),
        (2**53, np.int64),
    ],
)
def test_the_type_changes_at_the_bound(magnitude, expected):
    assert exact_dtype(magnitude) == expected


@pytest.mark.parametrize("depth", [1023, 1024, 1025, 5000])
def test_products_at_the_bound_of_float32(depth):
    """127 * 129 * 1024 lies just below 2^24; beyond it the type must widen, and every sum stays exact."""
    weights = np.full((3, depth), 127)
    weights[1] = -127
    weights[2, ::2] = -127
    for magnitude, x in ((129, np.full((2, depth), 129)), (128, np.full((2, depth), -128))):
        x[1, ::3] -= np.sign(x[1, ::3])
        prepared = prepare_product(weights, magnitude)
        assert (prepared.dtype == np.float32) == (127 * magnitude * depth < 2**24)
        assert (accumulate_product(prepared, x) == x.astype(object) @ weights.T.astype(object)).all()


def test_products_beyond_float64():
    weights = np.array([[2**31 - 1, 2**31 - 1, 1], [1, -1, 1]])
    x = np.array([[2**30, 2**30 - 1, 1]])
    prepared = prepare_product(weights, 2**30)
    assert prepared.dtype == np.int64
    assert (accumulate_product(prepared, x) == x.astype(object) @ weights.T.astype(object)).all()


@kernel_settings
@given(seed=seeds, low=st.integers(-300, 0), high=st.integers(0, 300))
def test_the_range_of_an_accumulator_is_reached(seed, low, high):
    weights = np.random.default_rng(seed).integers(-128, 128, (4, 2, 3))
    lowest, highest = accumulator_range(weights, low, high)
    for o in range(4):
        assert lowest[o] == np.where(weights[o] > 0, weights[o] * low, weights[o] * high).sum()
        assert highest[o] == np.where(weights[o] > 0, weights[o] * high, weights[o] * low).sum()


def test_what_does_not_fit_is_refused():
    with pytest.raises(GraphError, match="does not fit an input"):
        Window((3, 3)).output_size((2, 5))
    with pytest.raises(GraphError, match="stride is"):
        Window((3, 3), stride=(0, 1))
    with pytest.raises(GraphError, match="padding is"):
        Window((3, 3), top=-1)
    with pytest.raises(GraphError, match="do not fit 2 groups"):
        prepare_convolution(np.ones((3, 1, 1, 2), np.int8), Window((1, 1)), 2, 128)
    prepared = prepare_convolution(np.ones((3, 1, 1, 2), np.int8), Window((1, 1)), 1, 128)
    with pytest.raises(GraphError, match="the weights need 2"):
        accumulate_convolution(prepared, np.ones((1, 1, 2, 2, 3), np.int8), 0)
    shared = prepare_convolution(np.ones((4, 3, 3, 1), np.int8), Window((3, 3)), 1, 128, 8)
    assert shared.block > 1
    with pytest.raises(GraphError, match="the weights were prepared for multiples of"):
        accumulate_convolution(shared, np.ones((1, 1, 5, 5, 1), np.int8), 0)
    with pytest.raises(GraphError, match="do not fit multiplier 2"):
        prepare_depthwise(np.ones((1, 1, 3), np.int8), Window((1, 1)), 2, 128)

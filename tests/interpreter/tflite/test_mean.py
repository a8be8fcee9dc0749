"""MEAN against TFLite."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import affine, kernel_settings, quantizations, seeds, shapes, with_constants
from tests.support.single_op import check_against_oracle, random_inputs
from tests.support.types import INT8, INT16, QUANTIZED
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import DType
from tflq.interpreter import lower
from tflq.interpreter.kernels.tflite.reduction import FLOAT32_EXACT


def mean_graph(shape, axes, dtype, source=None, target=None, keep_dims=False):
    resolved = {axis % len(shape) for axis in axes}
    kept = [1 if i in resolved else n for i, n in enumerate(shape) if keep_dims or i not in resolved]
    constants = [np.array(axes, np.int32)]
    return with_constants("mean", shape, kept, constants, dtype, source, target, keep_dims=keep_dims)


@st.composite
def axes_of(draw, shape):
    """Some axes, negative ones and doubles too."""
    return draw(st.lists(st.integers(-len(shape), len(shape) - 1), min_size=1, max_size=3))


@pytest.mark.parametrize("dtype", QUANTIZED)
@kernel_settings
@given(data=st.data(), shape=shapes(5, 9), keep_dims=st.booleans(), seed=seeds)
def test_quantized(oracle, dtype, data, shape, keep_dims, seed):
    source, target = (data.draw(quantizations(dtype, -8, 3)) for _ in range(2))
    graph = mean_graph(shape, data.draw(axes_of(shape)), dtype, source, target, keep_dims)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(seed), graph, 20))


@pytest.mark.parametrize("dtype", [DType.INT32, DType.INT64])
@kernel_settings
@given(data=st.data(), shape=shapes(4, 5), keep_dims=st.booleans(), seed=seeds)
def test_plain_integers(oracle, dtype, data, shape, keep_dims, seed):
    graph = mean_graph(shape, data.draw(axes_of(shape)), dtype, keep_dims=keep_dims)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(seed), graph, 5))


@pytest.mark.parametrize("count", [FLOAT32_EXACT // 128 - 1, FLOAT32_EXACT // 128, FLOAT32_EXACT // 128 + 1])
@pytest.mark.parametrize("fill", [-128, 127, None])
def test_on_both_sides_of_the_bound_of_float32(oracle, count, fill):
    source, target = affine(INT8, 0.5, 3), affine(INT8, 0.37, -5)
    graph = mean_graph((count, 2), [0], INT8, source, target)
    inputs = random_inputs(np.random.default_rng(count), graph, 2)
    if fill is not None:
        inputs = [np.full_like(inputs[0], fill)]
    check_against_oracle(oracle, graph, inputs)


def test_the_accumulator_of_int16_wraps(oracle):
    graph = mean_graph((66000, 1), [0], INT16, affine(INT16, 0.5), affine(INT16, 0.5))
    check_against_oracle(oracle, graph, [np.full((1, 66000, 1), 32767, np.int16)])


@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 1000])
@pytest.mark.parametrize("power", [-33, -30, -29, -28, -26, -20, 20, 24, 25])
def test_scales_far_apart(oracle, count, power):
    """1 / n goes into the multiplier; far down, its bits run out before those of the shift."""
    graph = mean_graph(
        (count, 5), [0], INT8, affine(INT8, 1.5 * 2.0 ** min(power, 0), 3), affine(INT8, 2.0 ** -max(power, 0), -7)
    )
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(count), graph, 3))


def test_refusals():
    with pytest.raises(GraphError, match="axis 2 is out of range"):
        lower(with_constants("mean", (2, 3), (2,), [np.array([2], np.int32)], INT8, affine(INT8, 1)))
    with pytest.raises(UnsupportedError, match="takes 0 only"):
        lower(mean_graph((2, 3), [0], INT16, affine(INT16, 1, 5), affine(INT16, 1)))
    with pytest.raises(UnsupportedError, match="takes int8"):
        lower(mean_graph((2, 3), [0], DType.BOOL))

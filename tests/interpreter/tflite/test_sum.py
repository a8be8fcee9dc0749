"""SUM and REDUCE_PROD against TFLite."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import affine, kernel_settings, quantizations, scales, seeds, shapes
from tests.support.reductions import axes_of, reduction
from tests.support.single_op import assert_same_bits, check_against_oracle, random_inputs
from tests.support.types import FLOAT32, INT8, INT16, UINT8
from tflq.converters.tflite import model_to_bytes
from tflq.errors import UnsupportedError
from tflq.graph import DType
from tflq.interpreter import Engine, lower

PLAIN = [FLOAT32, DType.INT32, DType.INT64]


@kernel_settings
@given(data=st.data(), shape=shapes(5, 6), keep_dims=st.booleans(), seed=seeds)
def test_sum_of_uint8(oracle, data, shape, keep_dims, seed):
    source, target = (data.draw(quantizations(UINT8, -8, 3)) for _ in range(2))
    graph = reduction("sum", shape, data.draw(axes_of(shape)), UINT8, source, target, keep_dims)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(seed), graph, 20))


@kernel_settings
@given(data=st.data(), shape=shapes(4, 5), seed=seeds, si=scales(-8, 3), so=scales(-8, 3))
def test_sum_of_int8_is_that_of_uint8_with_all_codes_128_higher(oracle, data, shape, seed, si, so):
    """TFLite's reference kernel reads int8 as uint8.

    It judges the same sum with every quantized value and zero point moved.
    """
    axes = data.draw(axes_of(shape))
    zi, zo = (data.draw(st.integers(-128, 127)) for _ in range(2))
    graph = reduction("sum", shape, axes, INT8, affine(INT8, si, zi), affine(INT8, so, zo))
    moved = reduction("sum", shape, axes, UINT8, affine(UINT8, si, zi + 128), affine(UINT8, so, zo + 128))
    (x,) = random_inputs(np.random.default_rng(seed), graph, 20)
    raised = x.view(np.uint8) ^ np.uint8(128)
    (judged,) = oracle.run(model_to_bytes(moved), [raised], tensors="outputs").tensors.values()
    (ours,) = Engine(graph).run([x]).values()
    assert_same_bits(ours.view(np.uint8) ^ np.uint8(128), judged, "sum")


@kernel_settings
@given(data=st.data(), shape=shapes(4, 5), seed=seeds, si=scales(-8, 3), so=scales(-8, 3))
def test_sum_of_int16_is_that_of_uint8_where_codes_and_results_fit(oracle, data, shape, seed, si, so):
    """TFLite's reference kernel reads half of the int16.

    It judges the same sum of quantized values that uint8 holds too.
    """
    axes = data.draw(axes_of(shape))
    wide = reduction("sum", shape, axes, INT16, affine(INT16, si), affine(INT16, so))
    narrow = reduction("sum", shape, axes, UINT8, affine(UINT8, si), affine(UINT8, so))
    (x,) = random_inputs(np.random.default_rng(seed), narrow, 20)
    (judged,) = oracle.run(model_to_bytes(narrow), [x], tensors="outputs").tensors.values()
    (ours,) = Engine(wide).run([x.astype(np.int16)]).values()
    assert_same_bits(np.minimum(ours, 255).astype(np.uint8), judged, "sum")


@pytest.mark.parametrize("operator", ["sum", "reduce_prod"])
@pytest.mark.parametrize("dtype", PLAIN)
@pytest.mark.parametrize("axes", [[0], [-1, 0], [0, 1, 2], [1, 1], []])
def test_plain_numbers(oracle, operator, dtype, axes):
    graph = reduction(operator, (4, 3, 5), axes, dtype)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(1), graph, 20))


@pytest.mark.parametrize("dtype", [INT8, INT16, UINT8])
def test_plain_products_wrap(oracle, dtype):
    graph = reduction("reduce_prod", (4, 6), [1], dtype)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(1), graph, 20))


@pytest.mark.parametrize("operator", ["sum", "reduce_prod"])
@pytest.mark.parametrize("axes", [[0], [0, 1]])
def test_float_order_and_signed_zero(oracle, operator, axes):
    graph = reduction(operator, (40, 30), axes, FLOAT32)
    (x,) = random_inputs(np.random.default_rng(1), graph, 4)
    x[2:] = np.float32(-0.0)
    x[3, 5, 5] = np.inf
    check_against_oracle(oracle, graph, [x])


@pytest.mark.parametrize("dtype", [INT8, INT16])
@kernel_settings
@given(data=st.data(), shape=shapes(4, 5), keep_dims=st.booleans(), seed=seeds)
def test_quantized_product(oracle, dtype, data, shape, keep_dims, seed):
    source, target = (data.draw(quantizations(dtype, -10, 1)) for _ in range(2))
    graph = reduction("reduce_prod", shape, data.draw(axes_of(shape)), dtype, source, target, keep_dims)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(seed), graph, 20))


@pytest.mark.parametrize("shift", [-20, -8, 0, 13, 14, 15])
@pytest.mark.parametrize("factors", [1, 2, 4])
def test_the_largest_shift_of_a_product(oracle, shift, factors):
    """The multiplier of a factor is si / so^(1 / n), here below 2^shift."""
    source, target = affine(INT8, 0.75 * 2.0**shift), affine(INT8, 1.0)
    graph = reduction("reduce_prod", (factors, 8), [0], INT8, source, target)
    if shift > 14:
        with pytest.raises(UnsupportedError, match=f"of {factors} factors give a multiplier of 24576; below 2"):
            lower(graph)
        return
    x = np.random.default_rng(1).integers(-3, 4, (9, factors, 8)).astype(np.int8)
    check_against_oracle(oracle, graph, [x])


def test_refusals():
    with pytest.raises(UnsupportedError, match="kernel takes int8, int16"):
        lower(reduction("reduce_prod", (2, 3), [0], UINT8, affine(UINT8, 1), affine(UINT8, 1)))
    with pytest.raises(UnsupportedError, match="takes 0 only"):
        lower(reduction("sum", (2, 3), [0], INT16, affine(INT16, 1, 5), affine(INT16, 1)))
    with pytest.raises(UnsupportedError, match="below 2\\^14 is defined"):
        lower(reduction("reduce_prod", (2, 3), [0], INT8, affine(INT8, 2.0**20), affine(INT8, 1)))

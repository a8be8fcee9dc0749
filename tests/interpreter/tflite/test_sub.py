"""SUB against TFLite."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import (
    EIGHT_BITS,
    INT8,
    INT16,
    activations,
    affine,
    all_pairs,
    broadcast_shapes,
    kernel_settings,
    quantisations,
    seeds,
    two_inputs,
)
from tests.support.single_op import check_against_oracle, random_inputs
from tflq.errors import UnsupportedError
from tflq.graph import DType
from tflq.interpreter import lower


@pytest.mark.parametrize("dtype", EIGHT_BITS)
@kernel_settings
@given(data=st.data(), activation=activations)
def test_every_pair_of_codes(oracle, dtype, data, activation):
    x, y, out = (data.draw(quantisations(dtype)) for _ in range(3))
    graph = two_inputs(
        "sub", ((256,), (256,)), ((dtype, x), (dtype, y)), (dtype, out), fused_activation_function=activation
    )
    check_against_oracle(oracle, graph, all_pairs(dtype))


@kernel_settings
@given(data=st.data(), sizes=broadcast_shapes(), seed=seeds, dtype=st.sampled_from([*EIGHT_BITS, INT16]))
def test_broadcast(oracle, data, sizes, seed, dtype):
    x, y, out = (data.draw(quantisations(dtype)) for _ in range(3))
    graph = two_inputs("sub", sizes, ((dtype, x), (dtype, y)), (dtype, out), pot_scale_int16=False)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(seed), graph, 3))


@pytest.mark.parametrize("shift", [0, 1, 7, 15, 16, 20])
@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("sizes", [((500,), (500,)), ((5, 100), (100,))])
def test_int16_powers_of_two(oracle, shift, swap, sizes):
    scales = [2.0**-10, 2.0 ** (-10 - shift)]
    x, y = (affine(INT16, s) for s in (scales[::-1] if swap else scales))
    out = affine(INT16, 2.0**-10)
    graph = two_inputs("sub", sizes, ((INT16, x), (INT16, y)), (INT16, out), pot_scale_int16=True)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(shift), graph, 8))


@pytest.mark.parametrize("dtype", [DType.INT32, DType.INT64])
@pytest.mark.parametrize("activation", ["none", "relu", "relu6", "relu_n1_to_1"])
def test_plain_integers_wrap(oracle, dtype, activation):
    graph = two_inputs(
        "sub", ((3, 40), (40,)), ((dtype, None), (dtype, None)), (dtype, None), fused_activation_function=activation
    )
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(1), graph, 4))


@pytest.mark.parametrize("exponent", [-19, -20])
def test_an_output_multiplier_of_one_or_more_is_refused(exponent):
    x, out = affine(INT8, 1.0), affine(INT8, 2.0**exponent)
    with pytest.raises(UnsupportedError, match="output multiplier"):
        lower(two_inputs("sub", ((4,), (4,)), ((INT8, x), (INT8, x)), (INT8, out)))


def test_int16_without_scale_is_refused():
    with pytest.raises(UnsupportedError, match="the kernel takes int32, int64"):
        lower(two_inputs("sub", ((4,), (4,)), ((INT16, None),) * 2, (INT16, None)))

"""MUL against TFLite."""

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
        "mul", ((256,), (256,)), ((dtype, x), (dtype, y)), (dtype, out), fused_activation_function=activation
    )
    check_against_oracle(oracle, graph, all_pairs(dtype))


@kernel_settings
@given(data=st.data(), sizes=broadcast_shapes(), seed=seeds, dtype=st.sampled_from([*EIGHT_BITS, INT16]))
def test_broadcast(oracle, data, sizes, seed, dtype):
    x, y, out = (data.draw(quantisations(dtype)) for _ in range(3))
    graph = two_inputs("mul", sizes, ((dtype, x), (dtype, y)), (dtype, out))
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(seed), graph, 3))


@kernel_settings
@given(data=st.data(), seed=seeds, activation=activations)
def test_int16(oracle, data, seed, activation):
    x, y, out = (data.draw(quantisations(INT16, -16, -4)) for _ in range(3))
    options = {"fused_activation_function": activation}
    graph = two_inputs("mul", ((500,), (500,)), ((INT16, x), (INT16, y)), (INT16, out), **options)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(seed), graph, 8))


@pytest.mark.parametrize("dtype", EIGHT_BITS)
@kernel_settings
@given(data=st.data(), seed=seeds, activation=activations)
def test_int16_to_8_bits(oracle, dtype, data, seed, activation):
    out = data.draw(quantisations(dtype))
    x = affine(INT16, 2.0**-15)
    options = {"fused_activation_function": activation}
    graph = two_inputs("mul", ((500,), (500,)), ((INT16, x), (INT16, x)), (dtype, out), **options)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(seed), graph, 4))


@pytest.mark.parametrize("dtype", [DType.INT32, DType.INT64, INT16, DType.UINT32])
@pytest.mark.parametrize("activation", ["none", "relu", "relu6", "relu_n1_to_1"])
def test_plain_integers_wrap(oracle, dtype, activation):
    graph = two_inputs(
        "mul", ((3, 40), (40,)), ((dtype, None), (dtype, None)), (dtype, None), fused_activation_function=activation
    )
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(1), graph, 4))


def test_refused_where_tflite_refuses():
    symmetric, asymmetric = affine(INT16, 1), affine(INT16, 1, 3)
    with pytest.raises(UnsupportedError, match="takes 0 only"):
        lower(two_inputs("mul", ((4,), (4,)), ((INT16, symmetric), (INT16, asymmetric)), (INT16, symmetric)))
    with pytest.raises(UnsupportedError, match="take equal shapes"):
        lower(two_inputs("mul", ((4,), (1,)), ((INT16, symmetric),) * 2, (INT8, affine(INT8, 1))))
    with pytest.raises(UnsupportedError, match="equal types"):
        lower(two_inputs("mul", ((4,), (4,)), ((INT8, affine(INT8, 1)),) * 2, (INT16, symmetric)))

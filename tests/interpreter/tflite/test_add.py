"""ADD against TFLite."""

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
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import DType
from tflq.interpreter import lower


@pytest.mark.parametrize("dtype", EIGHT_BITS)
@kernel_settings
@given(data=st.data(), activation=activations)
def test_every_pair_of_codes(oracle, dtype, data, activation):
    x, y, out = data.draw(quantisations(dtype)), data.draw(quantisations(dtype)), data.draw(quantisations(dtype))
    graph = two_inputs(
        "add", ((256,), (256,)), ((dtype, x), (dtype, y)), (dtype, out), fused_activation_function=activation
    )
    check_against_oracle(oracle, graph, all_pairs(dtype))


@kernel_settings
@given(data=st.data(), sizes=broadcast_shapes(), seed=seeds, dtype=st.sampled_from([*EIGHT_BITS, INT16]))
def test_broadcast(oracle, data, sizes, seed, dtype):
    x, y, out = (data.draw(quantisations(dtype)) for _ in range(3))
    general = {"pot_scale_int16": False}
    graph = two_inputs("add", sizes, ((dtype, x), (dtype, y)), (dtype, out), **general)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(seed), graph, 3))


@kernel_settings
@given(data=st.data(), seed=seeds, activation=activations)
def test_int16(oracle, data, seed, activation):
    x, y, out = (data.draw(quantisations(INT16, -16, -4)) for _ in range(3))
    options = {"pot_scale_int16": False, "fused_activation_function": activation}
    graph = two_inputs("add", ((500,), (500,)), ((INT16, x), (INT16, y)), (INT16, out), **options)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(seed), graph, 8))


@pytest.mark.parametrize("shift", [0, 1, 7, 15, 16, 20])
@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("activation", ["none", "relu6"])
def test_int16_powers_of_two(oracle, shift, swap, activation):
    scales = [2.0**-10, 2.0 ** (-10 - shift)]
    x, y = (affine(INT16, s) for s in (scales[::-1] if swap else scales))
    options = {"pot_scale_int16": True, "fused_activation_function": activation}
    graph = two_inputs("add", ((500,), (500,)), ((INT16, x), (INT16, y)), (INT16, affine(INT16, 2.0**-10)), **options)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(shift), graph, 8))


@pytest.mark.parametrize("dtype", [DType.INT32, DType.INT64, INT16])
@pytest.mark.parametrize("activation", ["none", "relu", "relu6", "relu_n1_to_1"])
def test_plain_integers_wrap(oracle, dtype, activation):
    graph = two_inputs(
        "add", ((3, 40), (40,)), ((dtype, None), (dtype, None)), (dtype, None), fused_activation_function=activation
    )
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(1), graph, 4))


@pytest.mark.parametrize(
    ("x", "y", "out", "error", "words"),
    [
        (affine(INT8, 1.0), affine(INT8, 1.0), affine(INT8, 2.0**-19), UnsupportedError, "output multiplier 1"),
        (None, affine(INT8, 1.0), affine(INT8, 1.0), GraphError, "no scale"),
        (affine(INT8, 0.0), affine(INT8, 1.0), affine(INT8, 1.0), GraphError, "positive and finite"),
    ],
)
def test_refusals(x, y, out, error, words):
    graph = two_inputs("add", ((4,), (4,)), ((INT8, x), (INT8, y)), (INT8, out))
    with pytest.raises(error, match=words):
        lower(graph)


def test_refused_where_tflite_refuses():
    unequal = two_inputs("add", ((4,), (4,)), ((INT8, affine(INT8, 1)), (DType.INT32, None)), (INT8, affine(INT8, 1)))
    with pytest.raises(UnsupportedError, match="equal types"):
        lower(unequal)
    with pytest.raises(UnsupportedError, match="takes int8"):
        lower(two_inputs("add", ((4,), (4,)), ((DType.BOOL, None),) * 2, (DType.BOOL, None)))
    asymmetric = affine(INT16, 1, 3)
    with pytest.raises(UnsupportedError, match="takes 0 only"):
        lower(two_inputs("add", ((4,), (4,)), ((INT16, asymmetric),) * 2, (INT16, asymmetric)))
    steps = [affine(INT16, 2.0**-e) for e in (9, 9, 8)]
    with pytest.raises(GraphError, match="one input must have the output's scale"):
        lower(two_inputs("add", ((4,), (4,)), ((INT16, steps[0]), (INT16, steps[1])), (INT16, steps[2])))

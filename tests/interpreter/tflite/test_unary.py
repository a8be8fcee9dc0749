"""Quantized functions of one tensor against TFLite: every quantized value."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import (
    affine,
    every_code,
    kernel_settings,
    one_input,
    quantizations,
    scales,
    seeds,
    shapes,
    zero_points,
)
from tests.support.single_op import check_against_oracle, random_inputs
from tests.support.types import EIGHT_BITS, INT8, INT16, UINT8
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import DType
from tflq.interpreter import Engine, lower


@pytest.mark.parametrize("operator", ["abs", "exp", "log"])
@kernel_settings
@given(data=st.data())
def test_int8(oracle, operator, data):
    source, target = data.draw(quantizations(INT8, -12, 2)), data.draw(quantizations(INT8, -12, 2))
    graph = one_input(operator, (256,), (INT8, source), (INT8, target))
    check_against_oracle(oracle, graph, [every_code(INT8)])


@pytest.mark.parametrize("operator", ["abs", "exp", "log"])
@kernel_settings
@given(source=scales(-20, -8), target=scales(-16, 0))
def test_int16(oracle, operator, source, target):
    graph = one_input(operator, (65536,), (INT16, affine(INT16, source)), (INT16, affine(INT16, target)))
    check_against_oracle(oracle, graph, [every_code(INT16)])


@pytest.mark.parametrize("operator", ["sqrt", "rsqrt"])
@kernel_settings
@given(data=st.data())
def test_roots_of_int8(oracle, operator, data):
    source, target = data.draw(quantizations(INT8, -12, 2)), data.draw(quantizations(INT8, -12, 2))
    graph = one_input(operator, (256,), (INT8, source), (INT8, target))
    check_against_oracle(oracle, graph, [np.maximum(every_code(INT8), np.int8(source.zero_point[0]))])


@pytest.mark.parametrize("operator", ["sqrt", "rsqrt"])
@kernel_settings
@given(source=scales(-20, 0), target=scales(-16, 0))
def test_roots_of_int16(oracle, operator, source, target):
    graph = one_input(operator, (65536,), (INT16, affine(INT16, source)), (INT16, affine(INT16, target)))
    check_against_oracle(oracle, graph, [np.maximum(every_code(INT16), np.int16(0))])


@pytest.mark.parametrize("approximate", [False, True])
@pytest.mark.parametrize("dtype", EIGHT_BITS)
@kernel_settings
@given(data=st.data())
def test_gelu_of_8_bits(oracle, approximate, dtype, data):
    source, target = data.draw(quantizations(dtype, -10, 0)), data.draw(quantizations(dtype, -10, 0))
    graph = one_input("gelu", (256,), (dtype, source), (dtype, target), approximate=approximate)
    check_against_oracle(oracle, graph, [every_code(dtype)])


@pytest.mark.parametrize("approximate", [False, True])
@kernel_settings
@given(source=scales(-16, -8), target=scales(-16, -8))
def test_gelu_of_int16(oracle, approximate, source, target):
    sides = (INT16, affine(INT16, source)), (INT16, affine(INT16, target))
    graph = one_input("gelu", (65536,), *sides, approximate=approximate)
    check_against_oracle(oracle, graph, [every_code(INT16)])


@kernel_settings
@given(data=st.data())
def test_elu(optimized_oracle, data):
    source, target = data.draw(quantizations(INT8, -10, 0)), data.draw(quantizations(INT8, -10, 0))
    graph = one_input("elu", (256,), (INT8, source), (INT8, target))
    check_against_oracle(optimized_oracle, graph, [every_code(INT8)])


@pytest.mark.parametrize(("dtype", "zero_point"), [(INT8, 0), (UINT8, 128)])
@kernel_settings
@given(data=st.data(), shape=shapes(3, 40), seed=seeds)
def test_l2_normalization(oracle, dtype, zero_point, data, shape, seed):
    source = affine(dtype, data.draw(scales()), data.draw(zero_points(dtype)))
    graph = one_input("l2_normalization", shape, (dtype, source), (dtype, affine(dtype, 1 / 128, zero_point)))
    (x,) = random_inputs(np.random.default_rng(seed), graph, 20)
    x[:5] = np.clip(x[:5] // 64 + source.zero_point[0], dtype.minimum, dtype.maximum)
    x[0] = source.zero_point[0]
    check_against_oracle(oracle, graph, [x])


@pytest.mark.parametrize(("dtype", "zero_point"), [(INT8, 127), (UINT8, 255)])
@kernel_settings
@given(data=st.data(), shape=shapes(3, 40), seed=seeds)
def test_log_softmax(oracle, dtype, zero_point, data, shape, seed):
    source = affine(dtype, data.draw(scales(-12, 1)), data.draw(zero_points(dtype)))
    graph = one_input("log_softmax", shape, (dtype, source), (dtype, affine(dtype, 1 / 16, zero_point)))
    (x,) = random_inputs(np.random.default_rng(seed), graph, 20)
    x[:5] //= 16
    check_against_oracle(oracle, graph, [x])


@pytest.mark.parametrize("dtype", [INT16, DType.INT32])
def test_abs_of_plain_integers(oracle, dtype):
    graph = one_input("abs", (100,), (dtype, None), (dtype, None))
    (x,) = random_inputs(np.random.default_rng(1), graph, 2)
    x[0, 0] = dtype.minimum
    check_against_oracle(oracle, graph, [x])


def test_refusals():
    quantized = (INT8, affine(INT8, 0.1, 5))
    for operator in ("sqrt", "rsqrt"):
        graph = one_input(operator, (2,), quantized, quantized)
        with pytest.raises(UnsupportedError, match="the code 4 is below the zero point 5"):
            Engine(graph).run([np.array([[4, 7]], np.int8)])
    with pytest.raises(UnsupportedError, match="takes 1/128 and 0"):
        lower(one_input("l2_normalization", (2,), quantized, quantized))
    with pytest.raises(UnsupportedError, match="takes 1/16 and 127"):
        lower(one_input("log_softmax", (2,), quantized, quantized))
    with pytest.raises(GraphError, match="no scale"):
        lower(one_input("exp", (2,), (INT8, None), (INT8, None)))
    with pytest.raises(UnsupportedError, match="takes 0 only"):
        lower(one_input("log", (2,), (INT16, affine(INT16, 1, 3)), (INT16, affine(INT16, 1))))

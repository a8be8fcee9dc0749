"""DIV and SQUARED_DIFFERENCE against TFLite."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import (
    EIGHT_BITS,
    FLOAT32,
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
from tflq.interpreter import Engine, lower


def without(code, x):
    """Replace a divisor of 0 by its neighbour."""
    return np.where(x == code, x + (1 if code < np.iinfo(x.dtype).max else -1), x).astype(x.dtype)


@pytest.mark.parametrize("dtype", EIGHT_BITS)
@kernel_settings
@given(data=st.data(), activation=activations)
def test_every_pair_of_codes(oracle, dtype, data, activation):
    x, y, out = (data.draw(quantisations(dtype)) for _ in range(3))
    options = {"fused_activation_function": activation}
    graph = two_inputs("div", ((256,), (256,)), ((dtype, x), (dtype, y)), (dtype, out), **options)
    first, second = all_pairs(dtype)
    check_against_oracle(oracle, graph, [first, without(int(y.zero_point[0]), second)])


@kernel_settings
@given(data=st.data(), sizes=broadcast_shapes(), seed=seeds)
def test_int16(oracle, data, sizes, seed):
    x, y, out = (data.draw(quantisations(INT16, -16, 2)) for _ in range(3))
    graph = two_inputs("div", sizes, ((INT16, x), (INT16, y)), (INT16, out))
    first, second = random_inputs(np.random.default_rng(seed), graph, 20)
    check_against_oracle(oracle, graph, [first, without(0, second)])


@pytest.mark.parametrize("activation", ["none", "relu", "relu6", "relu_n1_to_1"])
def test_plain_numbers(oracle, activation):
    options = {"fused_activation_function": activation}
    for dtype in (DType.INT32, FLOAT32):
        graph = two_inputs("div", ((30, 4), (4,)), ((dtype, None),) * 2, (dtype, None), **options)
        first, second = random_inputs(np.random.default_rng(1), graph, 20)
        first, second = (first // 7, second >> 20) if dtype is DType.INT32 else (first, second)
        check_against_oracle(oracle, graph, [first, without(0, second) if dtype is DType.INT32 else second])


def test_float_by_zero(oracle):
    graph = two_inputs("div", ((6, 1), (6,)), ((FLOAT32, None),) * 2, (FLOAT32, None))
    values = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 2.5], np.float32)
    check_against_oracle(oracle, graph, [values.reshape(1, 6, 1), values.reshape(1, 6)])


@kernel_settings
@given(data=st.data())
def test_squared_difference_of_every_pair(oracle, data):
    x, y = (data.draw(quantisations(INT8, -8, 0)) for _ in range(2))
    out = affine(INT8, data.draw(st.floats(0.01, 30)), data.draw(st.integers(-128, 127)))
    graph = two_inputs("squared_difference", ((256,), (256,)), ((INT8, x), (INT8, y)), (INT8, out))
    check_against_oracle(oracle, graph, all_pairs(INT8))


@pytest.mark.parametrize("dtype", [DType.INT32, FLOAT32, INT8])
def test_squared_difference_broadcast(oracle, dtype):
    quantisation = affine(INT8, 0.3, 5) if dtype is INT8 else None
    graph = two_inputs("squared_difference", ((30, 1, 4), (3, 1)), ((dtype, quantisation),) * 2, (dtype, quantisation))
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(1), graph, 20))


def test_refusals():
    same = affine(INT8, 1, 3)
    graph = two_inputs("div", ((2,), (2,)), ((INT8, same),) * 2, (INT8, same))
    with pytest.raises(UnsupportedError, match=r"a divisor is 0 \(code 3\)"):
        Engine(graph).run([np.ones((1, 2), np.int8), np.full((1, 2), 3, np.int8)])
    plain = two_inputs("div", ((1,), (1,)), ((DType.INT32, None),) * 2, (DType.INT32, None))
    with pytest.raises(UnsupportedError, match="does not fit int32"):
        Engine(plain).run([np.full((1, 1), -(1 << 31), np.int32), np.full((1, 1), -1, np.int32)])
    with pytest.raises(UnsupportedError, match="between 0 and 1"):
        lower(two_inputs("squared_difference", ((2,), (2,)), ((INT8, same),) * 2, (INT8, affine(INT8, 2.0**-20))))

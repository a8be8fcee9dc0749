"""ADD, SUB, MUL, DIV and SQUARED_DIFFERENCE against TFLite: one table of cases for what they share."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import (
    activations,
    affine,
    all_pairs,
    broadcast_shapes,
    kernel_settings,
    quantizations,
    seeds,
    two_inputs,
)
from tests.support.single_op import check_against_oracle, random_inputs
from tests.support.types import EIGHT_BITS, FLOAT32, INT8, INT16
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import Affine, Attribute, DType, Graph
from tflq.interpreter import Engine, lower

INT32, INT64 = DType.INT32, DType.INT64
GENERAL = {"add": {"pot_scale_int16": False}, "sub": {"pot_scale_int16": False}, "mul": {}}
"""Operators with the options under which int16 takes the general path."""
PLAIN = [
    *((operator, dtype) for operator in ("add", "sub", "mul") for dtype in (INT32, INT64)),
    ("add", INT16), ("mul", INT16), ("mul", DType.UINT32),
]  # fmt: skip
POWERS_OF_TWO = [
    ("add", ((500,), (500,)), "none"),
    ("add", ((500,), (500,)), "relu6"),
    ("sub", ((500,), (500,)), "none"),
    ("sub", ((5, 100), (100,)), "none"),
]


def pair(
    operator: str,
    sizes: tuple[tuple[int, ...], tuple[int, ...]],
    dtype: DType,
    x: Affine | None,
    y: Affine | None,
    out: Affine | None,
    out_dtype: DType | None = None,
    **options: Attribute,
) -> Graph:
    """A graph of one operator with inputs of equal type."""
    return two_inputs(operator, sizes, ((dtype, x), (dtype, y)), (out_dtype or dtype, out), **options)


def without(code, x):
    """Replace a divisor of 0 by its neighbor."""
    return np.where(x == code, x + (1 if code < np.iinfo(x.dtype).max else -1), x).astype(x.dtype)


@pytest.mark.parametrize("operator", ["add", "sub", "mul", "div"])
@pytest.mark.parametrize("dtype", EIGHT_BITS)
@kernel_settings
@given(data=st.data(), activation=activations)
def test_every_pair_of_codes(oracle, operator, dtype, data, activation):
    x, y, out = (data.draw(quantizations(dtype)) for _ in range(3))
    graph = pair(operator, ((256,), (256,)), dtype, x, y, out, fused_activation_function=activation)
    first, second = all_pairs(dtype)
    check_against_oracle(oracle, graph, [first, without(int(y.zero_point[0]), second) if operator == "div" else second])


@pytest.mark.parametrize("operator", GENERAL)
@kernel_settings
@given(data=st.data(), sizes=broadcast_shapes(), seed=seeds, dtype=st.sampled_from([*EIGHT_BITS, INT16]))
def test_broadcast(oracle, operator, data, sizes, seed, dtype):
    x, y, out = (data.draw(quantizations(dtype)) for _ in range(3))
    graph = pair(operator, sizes, dtype, x, y, out, **GENERAL[operator])
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(seed), graph, 3))


@pytest.mark.parametrize("operator", GENERAL)
@kernel_settings
@given(data=st.data(), seed=seeds, activation=activations)
def test_int16(oracle, operator, data, seed, activation):
    x, y, out = (data.draw(quantizations(INT16, -16, -4)) for _ in range(3))
    options = {**GENERAL[operator], "fused_activation_function": activation}
    graph = pair(operator, ((500,), (500,)), INT16, x, y, out, **options)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(seed), graph, 8))


@pytest.mark.parametrize("shift", [0, 1, 7, 15, 16, 20])
@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize(("operator", "sizes", "activation"), POWERS_OF_TWO)
def test_int16_powers_of_two(oracle, shift, swap, operator, sizes, activation):
    scales = [2.0**-10, 2.0 ** (-10 - shift)]
    x, y = (affine(INT16, s) for s in (scales[::-1] if swap else scales))
    options = {"pot_scale_int16": True, "fused_activation_function": activation}
    graph = pair(operator, sizes, INT16, x, y, affine(INT16, 2.0**-10), **options)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(shift), graph, 8))


@pytest.mark.parametrize(("operator", "dtype"), PLAIN)
@pytest.mark.parametrize("activation", ["none", "relu", "relu6", "relu_n1_to_1"])
def test_plain_integers_wrap(oracle, operator, dtype, activation):
    graph = pair(operator, ((3, 40), (40,)), dtype, None, None, None, fused_activation_function=activation)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(1), graph, 4))


@pytest.mark.parametrize("dtype", EIGHT_BITS)
@kernel_settings
@given(data=st.data(), seed=seeds, activation=activations)
def test_mul_of_int16_to_8_bits(oracle, dtype, data, seed, activation):
    out, x = data.draw(quantizations(dtype)), affine(INT16, 2.0**-15)
    graph = pair("mul", ((500,), (500,)), INT16, x, x, out, dtype, fused_activation_function=activation)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(seed), graph, 4))


@kernel_settings
@given(data=st.data(), sizes=broadcast_shapes(), seed=seeds)
def test_div_of_int16(oracle, data, sizes, seed):
    x, y, out = (data.draw(quantizations(INT16, -16, 2)) for _ in range(3))
    graph = pair("div", sizes, INT16, x, y, out)
    first, second = random_inputs(np.random.default_rng(seed), graph, 20)
    check_against_oracle(oracle, graph, [first, without(0, second)])


@pytest.mark.parametrize("activation", ["none", "relu", "relu6", "relu_n1_to_1"])
def test_div_of_plain_numbers(oracle, activation):
    for dtype in (INT32, FLOAT32):
        graph = pair("div", ((30, 4), (4,)), dtype, None, None, None, fused_activation_function=activation)
        first, second = random_inputs(np.random.default_rng(1), graph, 20)
        first, second = (first // 7, second >> 20) if dtype is INT32 else (first, second)
        check_against_oracle(oracle, graph, [first, without(0, second) if dtype is INT32 else second])


def test_div_of_floats_by_zero(oracle):
    graph = pair("div", ((6, 1), (6,)), FLOAT32, None, None, None)
    values = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 2.5], np.float32)
    check_against_oracle(oracle, graph, [values.reshape(1, 6, 1), values.reshape(1, 6)])


@kernel_settings
@given(data=st.data())
def test_squared_difference_of_every_pair(oracle, data):
    x, y = (data.draw(quantizations(INT8, -8, 0)) for _ in range(2))
    out = affine(INT8, data.draw(st.floats(0.01, 30)), data.draw(st.integers(-128, 127)))
    check_against_oracle(oracle, pair("squared_difference", ((256,), (256,)), INT8, x, y, out), all_pairs(INT8))


@pytest.mark.parametrize("dtype", [INT32, FLOAT32, INT8])
def test_squared_difference_broadcast(oracle, dtype):
    q = affine(INT8, 0.3, 5) if dtype is INT8 else None
    graph = pair("squared_difference", ((30, 1, 4), (3, 1)), dtype, q, q, q)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(1), graph, 20))


ONE = affine(INT8, 1.0)
SYMMETRIC, ASYMMETRIC = affine(INT16, 1), affine(INT16, 1, 3)
NINE, EIGHT = affine(INT16, 2.0**-9), affine(INT16, 2.0**-8)
REFUSED = [
    ("add", (INT8, ONE), (INT8, ONE), (INT8, affine(INT8, 2.0**-19)), UnsupportedError, "output multiplier 1"),
    ("add", (INT8, None), (INT8, ONE), (INT8, ONE), GraphError, "no scale"),
    ("add", (INT8, affine(INT8, 0.0)), (INT8, ONE), (INT8, ONE), GraphError, "positive and finite"),
    ("add", (INT8, ONE), (INT32, None), (INT8, ONE), UnsupportedError, "equal types"),
    ("add", (DType.BOOL, None), (DType.BOOL, None), (DType.BOOL, None), UnsupportedError, "takes int8"),
    ("add", (INT16, ASYMMETRIC), (INT16, ASYMMETRIC), (INT16, ASYMMETRIC), UnsupportedError, "takes 0 only"),
    ("add", (INT16, NINE), (INT16, NINE), (INT16, EIGHT), GraphError, "one input must have the output's scale"),
    ("sub", (INT8, ONE), (INT8, ONE), (INT8, affine(INT8, 2.0**-19)), UnsupportedError, "output multiplier"),
    ("sub", (INT8, ONE), (INT8, ONE), (INT8, affine(INT8, 2.0**-20)), UnsupportedError, "output multiplier"),
    ("sub", (INT16, None), (INT16, None), (INT16, None), UnsupportedError, "the kernel takes int32, int64"),
    ("mul", (INT16, SYMMETRIC), (INT16, ASYMMETRIC), (INT16, SYMMETRIC), UnsupportedError, "takes 0 only"),
    ("mul", (INT8, ONE), (INT8, ONE), (INT16, SYMMETRIC), UnsupportedError, "equal types"),
    ("squared_difference", *((INT8, affine(INT8, 1, 3)),) * 2, (INT8, affine(INT8, 2.0**-20)), UnsupportedError,
     "between 0 and 1"),
]  # fmt: skip


@pytest.mark.parametrize(("operator", "x", "y", "out", "error", "words"), REFUSED)
def test_refusals(operator, x, y, out, error, words):
    with pytest.raises(error, match=words):
        lower(two_inputs(operator, ((4,), (4,)), (x, y), out))


def test_mul_of_int16_to_8_bits_takes_equal_shapes():
    with pytest.raises(UnsupportedError, match="take equal shapes"):
        lower(pair("mul", ((4,), (1,)), INT16, SYMMETRIC, SYMMETRIC, ONE, INT8))


def test_div_refuses_at_run_time():
    same = affine(INT8, 1, 3)
    graph = pair("div", ((2,), (2,)), INT8, same, same, same)
    with pytest.raises(UnsupportedError, match=r"a divisor is 0 \(code 3\)"):
        Engine(graph).run([np.ones((1, 2), np.int8), np.full((1, 2), 3, np.int8)])
    plain = pair("div", ((1,), (1,)), INT32, None, None, None)
    with pytest.raises(UnsupportedError, match="does not fit int32"):
        Engine(plain).run([np.full((1, 1), -(1 << 31), np.int32), np.full((1, 1), -1, np.int32)])

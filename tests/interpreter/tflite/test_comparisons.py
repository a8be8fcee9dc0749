"""EQUAL, NOT_EQUAL, GREATER, GREATER_EQUAL, LESS and LESS_EQUAL against TFLite."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import (
    affine,
    all_pairs,
    broadcast_shapes,
    kernel_settings,
    quantizations,
    scales,
    seeds,
    two_inputs,
)
from tests.support.single_op import check_against_oracle, random_inputs
from tests.support.types import EIGHT_BITS, INT8, INT16
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import DType
from tflq.interpreter import lower

OPERATORS = ["equal", "not_equal", "greater", "greater_equal", "less", "less_equal"]
BOOL = (DType.BOOL, None)
PLAIN = [DType.FLOAT32, DType.FLOAT16, DType.INT32, DType.INT64, INT16]
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -1.5, 65504.0]


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("dtype", EIGHT_BITS)
@kernel_settings
@given(data=st.data())
def test_every_pair_of_codes(oracle, operator, dtype, data):
    x, y = (data.draw(quantizations(dtype, -12, 4).filter(lambda q: q.scale[0] != 1)) for _ in range(2))
    graph = two_inputs(operator, ((256,), (256,)), ((dtype, x), (dtype, y)), BOOL)
    check_against_oracle(oracle, graph, all_pairs(dtype))


@pytest.mark.parametrize("operator", OPERATORS)
@kernel_settings
@given(sizes=broadcast_shapes(), seed=seeds, dtype=st.sampled_from([*EIGHT_BITS, INT16]), scale=scales(-10, 0))
def test_broadcast(oracle, operator, sizes, seed, dtype, scale):
    scale = scale if scale != 1 else np.float32(0.3)
    graph = two_inputs(operator, sizes, ((dtype, affine(dtype, scale)), (dtype, affine(dtype, 0.5))), BOOL)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(seed), graph, 3))


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("dtype", PLAIN)
def test_plain_numbers(oracle, operator, dtype):
    if (operator, dtype) == ("not_equal", INT16):
        pytest.skip("TFLite leaves the output of NOT_EQUAL of plain int16 unwritten: see diagnosis/known_differences")
    graph = two_inputs(operator, ((8, 8), (8,)), ((dtype, None), (dtype, None)), BOOL)
    rng = np.random.default_rng(1)
    ties = [rng.integers(-2, 3, (20, *shape)).astype(dtype.storage) for shape in ((8, 8), (8,))]
    check_against_oracle(oracle, graph, ties)


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.FLOAT16])
def test_nan_and_signed_zero(oracle, operator, dtype):
    graph = two_inputs(operator, ((8, 1), (8,)), ((dtype, None), (dtype, None)), BOOL)
    values = np.array(SPECIAL, dtype.storage)
    check_against_oracle(oracle, graph, [values.reshape(1, 8, 1), values.reshape(1, 8)])


@pytest.mark.parametrize("operator", ["equal", "not_equal"])
def test_bools_and_strings(oracle, operator):
    graph = two_inputs(operator, ((6,), (6,)), (BOOL, BOOL), BOOL)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(1), graph, 4))
    graph = two_inputs(operator, ((2, 2), (2,)), ((DType.STRING, None),) * 2, BOOL)
    x = np.array([b"", b"a", b"ab", b"\x00"], object).reshape(1, 2, 2)
    check_against_oracle(oracle, graph, [x, np.array([[b"", b"\x00"]], object)])


def test_refusals():
    with pytest.raises(UnsupportedError, match="scale 1; TFLite aborts"):
        lower(two_inputs("less", ((2,), (2,)), ((INT8, affine(INT8, 1)),) * 2, BOOL))
    with pytest.raises(GraphError, match="no scale"):
        lower(two_inputs("less", ((2,), (2,)), ((INT8, None),) * 2, BOOL))
    with pytest.raises(UnsupportedError, match="kernel takes float32"):
        lower(two_inputs("less", ((2,), (2,)), (BOOL, BOOL), BOOL))

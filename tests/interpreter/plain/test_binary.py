"""MAXIMUM, MINIMUM and the logical operators against TFLite."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from tests.support.draw import affine, broadcast_shapes, kernel_settings, one_input, seeds, two_inputs
from tests.support.single_op import check_against_oracle, random_inputs
from tests.support.types import INT8, INT16, QUANTIZED
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import DType
from tflq.interpreter import lower

NUMBERS = (DType.FLOAT32, DType.FLOAT16, DType.INT32, DType.INT64, INT16, INT8, DType.UINT8)
SPECIAL = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -1.5]


@pytest.mark.parametrize("operator", ["maximum", "minimum"])
@pytest.mark.parametrize("dtype", NUMBERS)
def test_plain_numbers(oracle, operator, dtype):
    graph = two_inputs(operator, ((4, 3, 5), (3, 1)), ((dtype, None), (dtype, None)), (dtype, None))
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(1), graph, 20))


@pytest.mark.parametrize("operator", ["maximum", "minimum"])
@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.FLOAT16])
def test_nan_and_signed_zero(oracle, operator, dtype):
    graph = two_inputs(operator, ((8, 1), (8,)), ((dtype, None), (dtype, None)), (dtype, None))
    values = np.array(SPECIAL, dtype.storage)
    check_against_oracle(oracle, graph, [values.reshape(1, 8, 1), values.reshape(1, 8)])


@pytest.mark.parametrize("operator", ["maximum", "minimum"])
@pytest.mark.parametrize("dtype", QUANTIZED)
@kernel_settings
@given(sizes=broadcast_shapes(), seed=seeds)
def test_codes_are_compared_whatever_their_scales(oracle, operator, dtype, sizes, seed):
    x, y, out = (affine(dtype, scale) for scale in (0.5, 0.25, 1.5))
    graph = two_inputs(operator, sizes, ((dtype, x), (dtype, y)), (dtype, out))
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(seed), graph, 3))


@pytest.mark.parametrize("operator", ["logical_and", "logical_or"])
@kernel_settings
@given(sizes=broadcast_shapes(4), seed=seeds)
def test_logical(oracle, operator, sizes, seed):
    graph = two_inputs(operator, sizes, ((DType.BOOL, None),) * 2, (DType.BOOL, None))
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(seed), graph, 4))


def test_logical_not(oracle):
    graph = one_input("logical_not", (40,), (DType.BOOL, None), (DType.BOOL, None))
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(1), graph, 2))


def test_refusals():
    plain = (DType.FLOAT32, None)
    graph = two_inputs("maximum", ((3,), (1,)), (plain, plain), plain)
    graph.tensors[1] = replace(graph.tensors[1], shape=(2,))
    with pytest.raises(GraphError, match="do not broadcast"):
        lower(graph)
    with pytest.raises(UnsupportedError, match="equal types"):
        lower(two_inputs("minimum", ((3,), (3,)), (plain, (DType.INT32, None)), plain))
    with pytest.raises(UnsupportedError, match="kernel takes bool"):
        lower(two_inputs("logical_and", ((3,), (3,)), ((DType.INT32, None),) * 2, (DType.BOOL, None)))

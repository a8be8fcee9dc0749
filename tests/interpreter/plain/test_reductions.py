"""REDUCE_MAX, REDUCE_MIN, REDUCE_ANY, REDUCE_ALL, ARG_MAX and ARG_MIN against TFLite."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import affine, kernel_settings, quantizations, seeds, shapes
from tests.support.reductions import axes_of, reduction
from tests.support.single_op import check_against_oracle, random_inputs
from tests.support.types import INT8, INT16, QUANTIZED
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import DType, GraphBuilder
from tflq.interpreter import lower

EXTREMES = ["reduce_max", "reduce_min"]
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5]


@pytest.mark.parametrize("operator", EXTREMES)
@kernel_settings
@given(data=st.data(), shape=shapes(5, 4), keep_dims=st.booleans(), seed=seeds)
def test_extremes_of_codes(oracle, operator, data, shape, keep_dims, seed):
    dtype = data.draw(st.sampled_from(QUANTIZED))
    same = data.draw(quantizations(dtype))
    graph = reduction(operator, shape, data.draw(axes_of(shape)), dtype, same, same, keep_dims)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(seed), graph, 5))


@pytest.mark.parametrize("operator", EXTREMES)
@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.INT32, DType.INT64, INT8, INT16, DType.UINT8, DType.BOOL])
@pytest.mark.parametrize("axes", [[0], [-1, 0], [0, 1, 2], []])
def test_extremes_of_plain_numbers(oracle, operator, dtype, axes):
    graph = reduction(operator, (4, 3, 5), axes, dtype)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(1), graph, 5))


@pytest.mark.parametrize("operator", EXTREMES)
@pytest.mark.parametrize("axes", [[0], [0, 1]])
def test_nan_infinity_and_signed_zero(oracle, operator, axes):
    graph = reduction(operator, (3, 2), axes, DType.FLOAT32)
    rng = np.random.default_rng(1)
    check_against_oracle(oracle, graph, [rng.choice(np.array(SPECIAL, np.float32), (200, 3, 2))])


@pytest.mark.parametrize("operator", ["reduce_any", "reduce_all"])
@kernel_settings
@given(data=st.data(), shape=shapes(4, 3), keep_dims=st.booleans(), seed=seeds)
def test_logical(oracle, operator, data, shape, keep_dims, seed):
    graph = reduction(operator, shape, data.draw(axes_of(shape)), DType.BOOL, None, None, keep_dims)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(seed), graph, 5))


def arg_extreme(operator, shape, axis, dtype, output):
    b = GraphBuilder(operator)
    operands = [b.input("x", shape, dtype), b.constant("axis", np.array(axis, np.int32))]
    kept = [n for i, n in enumerate(shape) if i != axis % len(shape)]
    return b.build([b.add(operator, operands, kept, output, output_type=output.value)])


@pytest.mark.parametrize("operator", ["arg_max", "arg_min"])
@pytest.mark.parametrize("dtype", [DType.FLOAT32, INT8, DType.UINT8, DType.INT32, DType.BOOL])
@pytest.mark.parametrize(("axis", "output"), [(0, DType.INT32), (-1, DType.INT64), (1, DType.INT32)])
def test_arg_extremes(oracle, operator, dtype, axis, output):
    graph = arg_extreme(operator, (3, 7, 5), axis, dtype, output)
    rng = np.random.default_rng(1)
    ties = rng.integers(0, 4, (10, 3, 7, 5)).astype(dtype.storage)
    check_against_oracle(oracle, graph, [np.concatenate([ties, random_inputs(rng, graph, 5)[0]])])


@pytest.mark.parametrize("operator", ["arg_max", "arg_min"])
def test_nan_is_passed_over(oracle, operator):
    graph = arg_extreme(operator, (4, 3), 0, DType.FLOAT32, DType.INT32)
    rng = np.random.default_rng(1)
    check_against_oracle(oracle, graph, [rng.choice(np.array(SPECIAL, np.float32), (300, 4, 3))])


def test_refusals():
    with pytest.raises(UnsupportedError, match="takes equal ones"):
        lower(reduction("reduce_max", (2, 3), [0], INT8, affine(INT8, 1), affine(INT8, 0.5)))
    with pytest.raises(GraphError, match="axis 2 is out of range"):
        lower(arg_extreme("arg_max", (2, 3), 2, INT8, DType.INT32))
    with pytest.raises(UnsupportedError, match="kernel takes float32"):
        lower(arg_extreme("arg_max", (2, 3), 1, INT16, DType.INT32))
    with pytest.raises(GraphError, match="no elements to choose from"):
        lower(arg_extreme("arg_max", (2, 0), 1, INT8, DType.INT32))

"""RESHAPE, SQUEEZE and EXPAND_DIMS against TFLite."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import affine, kernel_settings, one_input, seeds, shapes, with_constants
from tests.support.single_op import check_against_oracle, random_inputs
from tests.support.types import FLOAT32, INT8, INT16
from tflq.errors import GraphError
from tflq.graph import DType, GraphBuilder
from tflq.interpreter import lower

TYPES = [(INT8, affine(INT8, 0.5, 3)), (INT16, affine(INT16, 0.5)), (FLOAT32, None), (DType.INT64, None)]


@pytest.mark.parametrize(("dtype", "quantization"), TYPES)
@kernel_settings
@given(shape=shapes(4, 4), order=st.randoms(use_true_random=False), hole=st.booleans(), seed=seeds)
def test_reshape(oracle, dtype, quantization, shape, order, hole, seed):
    target = [*shape, 1]
    order.shuffle(target)
    wanted = list(target)
    if hole:
        wanted[0] = -1
    graph = with_constants("reshape", shape, target, [np.array(wanted, np.int32)], dtype, quantization)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(seed), graph, 3))


@pytest.mark.parametrize(("old", "new", "after"), [((2, 3), (3, 2), (3, 2)), ((2, 3), (-1,), (6,)), ((1,), (0,), ())])
def test_shape_from_the_options(oracle, old, new, after):
    graph = one_input("reshape", old, (FLOAT32, None), (FLOAT32, None), after, new_shape=new)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(0), graph, 3))


@kernel_settings
@given(data=st.data(), shape=st.lists(st.sampled_from([1, 1, 2, 3]), min_size=1, max_size=6), seed=seeds)
def test_squeeze(oracle, data, shape, seed):
    ones = [i for i, n in enumerate(shape) if n == 1]
    named = data.draw(st.lists(st.sampled_from(ones), unique=True)) if ones else []
    given_axes = tuple(axis - len(shape) if data.draw(st.booleans()) else axis for axis in named)
    gone = named or ones
    after = [n for i, n in enumerate(shape) if i not in gone]
    q = affine(INT8, 0.5)
    graph = one_input("squeeze", shape, (INT8, q), (INT8, q), after, squeeze_dims=given_axes)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(seed), graph, 3))


@pytest.mark.parametrize("axis", range(-4, 4))
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_expand_dims(oracle, axis, kind):
    after = np.zeros((2, 3, 4)).reshape(np.expand_dims(np.zeros((2, 3, 4)), axis).shape).shape
    graph = with_constants("expand_dims", (2, 3, 4), after, [np.array([axis], kind)], INT8, affine(INT8, 0.5))
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(0), graph, 3))


@pytest.mark.parametrize("wanted", [(3, 2), (-1, 1), (1, 6)])
def test_a_shape_that_is_computed(oracle, wanted):
    b = GraphBuilder("reshape")
    x, s = b.input("x", (2, 3), FLOAT32), b.input("shape", (2,), DType.INT32)
    graph = b.build([b.add("reshape", [x, s], (2, 3), FLOAT32)])
    values = np.random.default_rng(0).normal(size=(3, 2, 3)).astype(np.float32)
    check_against_oracle(oracle, graph, [values, np.tile(np.array(wanted, np.int32), (3, 1))])


@pytest.mark.parametrize("wanted", [(4, 2), (-1, -1), (-2, 3), (-1, 4)])
def test_a_shape_that_does_not_fit(wanted):
    with pytest.raises(GraphError, match="new shape"):
        lower(with_constants("reshape", (2, 3), (prod((2, 3)),), [np.array(wanted, np.int32)], INT8, affine(INT8, 1)))


def test_refusals():
    with pytest.raises(GraphError, match="only 1 can be squeezed"):
        lower(one_input("squeeze", (2, 1), (FLOAT32, None), (FLOAT32, None), (1,), squeeze_dims=(0,)))
    with pytest.raises(GraphError, match="out of range"):
        lower(with_constants("expand_dims", (2,), (2, 1), [np.array([3], np.int32)], FLOAT32))
    with pytest.raises(GraphError, match="names 2 axes"):
        lower(with_constants("expand_dims", (2,), (2, 1), [np.array([0, 1], np.int32)], FLOAT32))

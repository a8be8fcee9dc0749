"""TRANSPOSE and SPLIT against TFLite."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import affine, kernel_settings, seeds, with_constants
from tests.support.single_op import check_against_oracle, random_inputs
from tests.support.types import FLOAT32, INT8, INT16, UINT8
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import DType, GraphBuilder
from tflq.interpreter import lower

TYPES = [(INT8, affine(INT8, 0.5, 3)), (INT16, affine(INT16, 0.5)), (FLOAT32, None), (DType.INT64, None)]


@pytest.mark.parametrize(("dtype", "quantization"), TYPES)
@kernel_settings
@given(data=st.data(), shape=st.lists(st.integers(1, 4), min_size=1, max_size=6), seed=seeds)
def test_transpose(oracle, dtype, quantization, data, shape, seed):
    order = data.draw(st.permutations(range(len(shape))))
    given_order = [axis - len(shape) if data.draw(st.booleans()) else axis for axis in order]
    after = [shape[axis] for axis in order]
    graph = with_constants("transpose", shape, after, [np.array(given_order, np.int32)], dtype, quantization)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(seed), graph, 3))


def split_graph(shape, axis, parts, dtype, quantization=None, outputs=None):
    b = GraphBuilder("split")
    a = b.constant("axis", np.array(axis, np.int32))
    x = b.input("x", shape, dtype, quantization)
    part = list(shape)
    part[axis] //= parts
    ys = [b.tensor(f"y{i}", part, dtype, quantization) for i in range(outputs or parts)]
    b.node("split", [a, x], ys, num_splits=parts)
    return b.build(ys)


@pytest.mark.parametrize(("dtype", "quantization"), [*TYPES, (UINT8, affine(UINT8, 0.5, 3))])
@kernel_settings
@given(data=st.data(), shape=st.lists(st.integers(1, 3), min_size=1, max_size=4), parts=st.integers(1, 4), seed=seeds)
def test_split(oracle, dtype, quantization, data, shape, parts, seed):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    shape[axis] *= parts
    graph = split_graph(shape, axis, parts, dtype, quantization)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(seed), graph, 3))


def test_refusals():
    with pytest.raises(GraphError, match="no permutation"):
        lower(with_constants("transpose", (2, 3), (2, 3), [np.array([0, 0], np.int32)], FLOAT32))
    with pytest.raises(UnsupportedError, match="up to 8"):
        lower(with_constants("transpose", (1,) * 9, (1,) * 9, [np.arange(9, dtype=np.int32)], FLOAT32))
    with pytest.raises(GraphError, match="equal parts"):
        lower(split_graph((5,), 0, 2, FLOAT32))
    with pytest.raises(GraphError, match="must be equal"):
        lower(split_graph((4,), 0, 2, FLOAT32, outputs=3))

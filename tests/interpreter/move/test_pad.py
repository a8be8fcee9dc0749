"""PAD and PADV2 against TFLite."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import affine, kernel_settings, quantizations, seeds, shapes, with_constants
from tests.support.single_op import check_against_oracle, random_inputs
from tests.support.types import FLOAT32, INT8, INT16, QUANTIZED
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import DType, GraphBuilder
from tflq.interpreter import lower

PLAIN = [FLOAT32, DType.INT32, DType.INT64, DType.BOOL, INT8, INT16]


@st.composite
def padded(draw):
    """A shape, amounts, and the shape after them."""
    shape = draw(shapes(5, 4))
    pair = st.tuples(st.integers(0, 3), st.integers(0, 3))
    amounts = draw(st.lists(pair, min_size=len(shape), max_size=len(shape)))
    return shape, amounts, [n + a + b for n, (a, b) in zip(shape, amounts, strict=True)]


@pytest.mark.parametrize("dtype", QUANTIZED)
@kernel_settings
@given(data=st.data(), where=padded(), seed=seeds)
def test_quantized(oracle, dtype, data, where, seed):
    shape, amounts, after = where
    q = data.draw(quantizations(dtype))
    graph = with_constants("pad", shape, after, [np.array(amounts, np.int32)], dtype, q)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(seed), graph, 3))


@pytest.mark.parametrize("dtype", PLAIN)
@pytest.mark.parametrize("kind", [np.int32, np.int64])
@kernel_settings
@given(where=padded(), seed=seeds)
def test_plain(oracle, dtype, kind, where, seed):
    shape, amounts, after = where
    graph = with_constants("pad", shape, after, [np.array(amounts, kind)], dtype)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(seed), graph, 3))


def padv2_graph(shape, amounts, after, dtype, quantization, value, value_quantization=None):
    b = GraphBuilder("padv2")
    x = b.input("x", shape, dtype, quantization)
    p = b.constant("paddings", np.array(amounts, np.int32))
    v = b.constant("value", np.asarray(value, dtype.storage), value_quantization or quantization)
    return b.build([b.add("padv2", [x, p, v], after, dtype, quantization)])


@pytest.mark.parametrize("dtype", [*QUANTIZED, FLOAT32, DType.INT32, DType.INT64])
@kernel_settings
@given(data=st.data(), where=padded(), seed=seeds, value=st.integers(0, 100))
def test_padv2(oracle, dtype, data, where, seed, value):
    q = data.draw(quantizations(dtype)) if dtype in QUANTIZED else None
    graph = padv2_graph(*where, dtype, q, value)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(seed), graph, 3))


def test_refusals():
    q = affine(INT8, 0.5, 3)
    with pytest.raises(GraphError, match=r"needs \(2, 2\)"):
        lower(with_constants("pad", (2, 3), (2, 3), [np.zeros((1, 2), np.int32)], INT8, q))
    with pytest.raises(GraphError, match="0 or more"):
        lower(with_constants("pad", (3,), (2,), [np.array([[-1, 0]], np.int32)], INT8, q))
    with pytest.raises(UnsupportedError, match="pads up to"):
        lower(with_constants("pad", (1,) * 9, (1,) * 9, [np.zeros((9, 2), np.int32)], INT8, q))
    with pytest.raises(UnsupportedError, match="differ in scale or zero point"):
        lower(padv2_graph((2,), [(0, 1)], (3,), INT8, q, 1, affine(INT8, 0.5, 4)))
    with pytest.raises(GraphError, match=r"zero point 200; those of int8 are -128\.\.127"):
        lower(with_constants("pad", (2,), (3,), [np.array([[0, 1]], np.int32)], INT8, affine(INT8, 1, 200)))


@pytest.mark.parametrize("operator", ["pad", "padv2"])
def test_both_take_a_value(oracle, operator) -> None:
    b = GraphBuilder()
    x = b.input("x", (3,), DType.FLOAT32)
    paddings, value = b.constant("p", np.array([[1, 2]], np.int32)), b.constant("v", np.array([7], np.float32))
    graph = b.build([b.add(operator, [x, paddings, value], (6,), DType.FLOAT32)])
    found = check_against_oracle(oracle, graph, [np.ones((1, 3), np.float32)])
    assert found[graph.outputs[0]].tolist() == [[7, 1, 1, 1, 7, 7]]

"""CONCATENATION against TFLite."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import affine, every_code, kernel_settings, quantizations, seeds, shapes
from tests.support.single_op import check_against_oracle, random_inputs
from tests.support.types import INT8, INT16, UINT8
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import DType, GraphBuilder
from tflq.interpreter import Engine, lower


def concatenation_graph(sizes, sources, dtype, target, axis, **attributes):
    b = GraphBuilder("concatenation")
    xs = [b.input(f"x{i}", size, dtype, q) for i, (size, q) in enumerate(zip(sizes, sources, strict=True))]
    shape = list(sizes[0])
    shape[axis] = sum(size[axis] for size in sizes)
    return b.build([b.add("concatenation", xs, shape, dtype, target, axis=axis, **attributes)])


@st.composite
def parts(draw):
    """Shapes that differ along one axis, and that axis."""
    shape = draw(shapes(4, 4))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    sizes = []
    for length in draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)):
        size = list(shape)
        size[axis] = length
        sizes.append(tuple(size))
    return sizes, axis


@kernel_settings
@given(data=st.data(), where=parts(), seed=seeds)
def test_uint8_is_rescaled(oracle, data, where, seed):
    sizes, axis = where
    sources = [data.draw(quantizations(UINT8)) for _ in sizes]
    graph = concatenation_graph(sizes, sources, UINT8, data.draw(quantizations(UINT8)), axis)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(seed), graph, 4))


@kernel_settings
@given(data=st.data())
def test_every_code_of_uint8(oracle, data):
    sources = [data.draw(quantizations(UINT8)) for _ in range(3)]
    graph = concatenation_graph([(256,)] * 3, sources, UINT8, data.draw(quantizations(UINT8)), 0)
    check_against_oracle(oracle, graph, [every_code(UINT8)] * 3)


@pytest.mark.parametrize("dtype", [INT8, INT16, DType.INT32, DType.INT64, DType.BOOL])
@kernel_settings
@given(where=parts(), seed=seeds)
def test_the_rest_is_copied(oracle, dtype, where, seed):
    sizes, axis = where
    q = affine(dtype, 0.5) if dtype in (INT8, INT16) else None
    graph = concatenation_graph(sizes, [q] * len(sizes), dtype, q, axis)
    check_against_oracle(oracle, graph, random_inputs(np.random.default_rng(seed), graph, 4))


def test_a_constant_is_shared_by_all_samples():
    q = affine(INT8, 0.5)
    b = GraphBuilder("concatenation")
    x = b.input("x", (2,), INT8, q)
    c = b.constant("c", np.array([7], np.int8), q)
    graph = b.build([b.add("concatenation", [c, x], (3,), INT8, q, axis=0)])
    found = Engine(graph).run([np.array([[1, 2], [3, 4]], np.int8)])[graph.outputs[0]]
    assert found.tolist() == [[7, 1, 2], [7, 3, 4]]


def test_refusals():
    q, other = affine(INT8, 0.5), affine(INT8, 0.25)
    with pytest.raises(UnsupportedError, match="int8 takes equal ones"):
        lower(concatenation_graph([(2,), (2,)], [q, other], INT8, q, 0))
    with pytest.raises(UnsupportedError, match="takes 0 only"):
        lower(concatenation_graph([(2,), (2,)], [affine(INT16, 1, 2)] * 2, INT16, affine(INT16, 1, 2), 0))
    with pytest.raises(UnsupportedError, match="fused activation 'relu'"):
        lower(concatenation_graph([(2,), (2,)], [q, q], INT8, q, 0, fused_activation_function="relu"))
    with pytest.raises(GraphError, match="differ elsewhere"):
        lower(concatenation_graph([(2, 3), (2, 4)], [q, q], INT8, q, 0))

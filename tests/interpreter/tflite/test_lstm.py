"""LSTM without an axis of time against TFLite: int8, hybrid and float32."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import affine, kernel_settings
from tests.support.lstm import Lstm, eight_bit_graph, lstm_graph, lstms
from tests.support.single_op import check_stream, random_inputs
from tests.support.types import FLOAT32, INT16, UINT8
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import ABSENT, Affine, Graph, GraphBuilder
from tflq.interpreter import lower


@pytest.mark.parametrize("kind", ["int8", "hybrid", "float"])
@kernel_settings
@given(how=lstms(), asymmetric=st.booleans())
def test_against_tflite(oracle, kind, how, asymmetric):
    """Cells fill whole registers, so that float gates do not depend on the host's libm."""
    cells = -(-how.cells // 4) * 4
    how = replace(how, cells=cells, outputs=how.outputs if how.projection else cells, steps=0)
    changes = {"asymmetric_quantize_inputs": asymmetric} if kind == "hybrid" else {}
    graph = lstm_graph("lstm", replace(how, time_major=False), kind, **changes)
    check_stream(oracle, graph, random_inputs(np.random.default_rng(how.seed), graph, 5))


def basic_graph(seed: int, batch: int, inputs: int, units: int, variables: bool, scale: float = 2.0**-11) -> Graph:
    b, rng = GraphBuilder("basic"), np.random.default_rng(seed)
    codes, state = affine(UINT8, 1 / 128, 128), affine(INT16, scale)
    weights = affine(UINT8, rng.uniform(0.002, 0.02), int(rng.integers(100, 156)))
    bias = Affine.per_tensor(np.float32(weights.scale[0] / 128), 0, 32)
    make = b.variable if variables else b.input
    operands = [
        b.input("x", (batch, inputs), UINT8, codes),
        make("h", (batch, units), UINT8, codes),
        b.constant("w", rng.integers(0, 256, (4 * units, inputs + units)).astype(np.uint8), weights),
        b.constant("b", rng.integers(-9999, 9999, 4 * units).astype(np.int32), bias),
        make("c", (batch, units), INT16, state),
    ]
    outputs = [
        b.tensor("h2", (batch, units), UINT8, codes),
        b.tensor("c2", (batch, units), INT16, state),
        b.tensor("together", (batch, inputs + units), UINT8, codes),
        b.tensor("gates", (batch, 4 * units), INT16, affine(INT16, 2.0**-12)),
    ]
    b.node("lstm", operands, outputs, 2, None, kernel_type="basic", fused_activation_function="tanh")
    return b.build(outputs)


@pytest.mark.parametrize("variables", [False, True])
@kernel_settings
@given(seed=st.integers(0, 9999), batch=st.integers(1, 3), inputs=st.integers(1, 30), units=st.integers(1, 17))
def test_the_basic_cell(oracle, variables, seed, batch, inputs, units):
    graph = basic_graph(seed, batch, inputs, units, variables)
    check_stream(oracle, graph, random_inputs(np.random.default_rng(seed), graph, 6))


def test_the_basic_cell_refuses_other_states():
    with pytest.raises(UnsupportedError, match="takes 2\\^-11 only"):
        lower(basic_graph(0, 1, 3, 4, False, 2.0**-10))


def basic_float_graph(seed: int, batch: int, inputs: int, units: int, variables: bool) -> Graph:
    b, rng = GraphBuilder("basic"), np.random.default_rng(seed)
    make = b.variable if variables else b.input
    operands = [
        b.input("x", (batch, inputs), FLOAT32),
        make("h", (batch, units), FLOAT32),
        b.constant("w", rng.normal(size=(4 * units, inputs + units)).astype(np.float32)),
        b.constant("b", rng.normal(size=4 * units).astype(np.float32)),
        make("c", (batch, units), FLOAT32),
    ]
    shapes = [(batch, units), (batch, units), (batch, inputs + units), (batch, 4 * units)]
    outputs = [b.tensor(f"y{i}", shape, FLOAT32) for i, shape in enumerate(shapes)]
    b.node("lstm", operands, outputs, 2, None, kernel_type="basic", fused_activation_function="tanh")
    return b.build(outputs)


@pytest.mark.parametrize("variables", [False, True])
@kernel_settings
@given(seed=st.integers(0, 9999), batch=st.integers(1, 5), inputs=st.integers(1, 30), units=st.integers(1, 5))
def test_the_basic_cell_of_floats(oracle, variables, seed, batch, inputs, units):
    """Units fill whole registers, so that gates do not depend on the host's libm."""
    graph = basic_float_graph(seed, batch, inputs, 4 * units, variables)
    check_stream(oracle, graph, random_inputs(np.random.default_rng(seed), graph, 5))


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("units", [1, 2, 3, 5, 6, 7])
def test_the_basic_cell_of_floats_with_units_left_over(oracle, batch, units):
    """Few elements meet the C library's exp here, whose last bit is nearly always the rounded one."""
    graph = basic_float_graph(units, batch, 6, units, False)
    check_stream(oracle, graph, random_inputs(np.random.default_rng(1), graph, 8))


def test_the_basic_cell_refuses_shapes_that_do_not_fit():
    graph = basic_float_graph(0, 1, 3, 4, False)
    graph.tensors[2] = replace(graph.tensors[2], shape=(16, 6), data=np.zeros((16, 6), np.float32))
    with pytest.raises(GraphError, match="do not fit"):
        lower(graph)


@kernel_settings
@given(how=lstms())
def test_gates_of_8_bits(oracle, how):
    graph = eight_bit_graph(how)
    check_stream(oracle, graph, random_inputs(np.random.default_rng(how.seed), graph, 6))


def without(graph: Graph, position: int) -> Graph:
    inputs = list(graph.nodes[0].inputs)
    inputs[position] = ABSENT
    graph.nodes[0] = replace(graph.nodes[0], inputs=tuple(inputs))
    return graph


def test_gates_of_8_bits_refused():
    for position in (16, 17, 21):
        with pytest.raises((GraphError, UnsupportedError), match=r"without normalization|need a projection|missing"):
            lower(without(eight_bit_graph(Lstm(cells=6, outputs=4)), position))
    graph = eight_bit_graph(Lstm())
    state = graph.nodes[0].inputs[19]
    graph.tensors[state] = replace(graph.tensors[state], quantization=affine(INT16, 2.0**-14))
    with pytest.raises(UnsupportedError, match="takes 2\\^-15"):
        lower(graph)


@pytest.mark.parametrize("name", ["cell_clip", "proj_clip"])
@pytest.mark.parametrize("make", [eight_bit_graph, lambda how: lstm_graph("lstm", replace(how, steps=0), "int8")])
def test_a_bound_below_0(make, name):
    graph = make(Lstm(cells=6, outputs=4, projection=True))
    node = graph.nodes[0]
    for bound in (0.0, 2.0**-20):
        graph.nodes[0] = replace(node, attributes=node.attributes.updated(**{name: bound}))
        lower(graph)
    graph.nodes[0] = replace(node, attributes=node.attributes.updated(**{name: -(2.0**-20)}))
    with pytest.raises(GraphError, match=f"{name} is -9.5.*; it is 0 for none, or positive"):
        lower(graph)


@pytest.mark.parametrize("bound", [2.0**-15, 0.25, 1 - 2.0**-15, 1.0, 1.5, 3e5])
@pytest.mark.parametrize("name", ["cell_clip", "proj_clip"])
def test_bounds_of_gates_of_8_bits(oracle, name, bound):
    graph = eight_bit_graph(Lstm(2, cells=9, outputs=5, projection=True, seed=5))
    node = graph.nodes[0]
    graph.nodes[0] = replace(
        node, attributes=node.attributes.updated(cell_clip=0.0, proj_clip=0.0).updated(**{name: bound})
    )
    check_stream(oracle, graph, random_inputs(np.random.default_rng(7), graph, 6))


def test_what_gates_of_8_bits_need():
    for position in (20, 22, 23):
        with pytest.raises(GraphError, match=f"input {position} is missing"):
            lower(without(eight_bit_graph(Lstm(cells=6, outputs=4)), position))
    graph = eight_bit_graph(Lstm(cells=6, outputs=4))
    inner = graph.nodes[0].intermediates
    graph.nodes[0] = replace(graph.nodes[0], intermediates=(*inner[:-1], ABSENT))
    with pytest.raises(GraphError, match="one of 12 intermediate tensors is missing"):
        lower(graph)

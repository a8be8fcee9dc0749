"""UNIDIRECTIONAL_SEQUENCE_LSTM against TFLite: int8 with int16 cells, hybrid and float32."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import affine, kernel_settings
from tests.support.known import check_known
from tests.support.lstm import Lstm, lstm_graph, lstms
from tests.support.single_op import check_stream, random_inputs
from tests.support.types import INT16
from tflq.errors import GraphError, UnsupportedError
from tflq.graph import DType, Tensor
from tflq.interpreter import lower

OPERATOR = "unidirectional_sequence_lstm"


@kernel_settings
@given(how=lstms())
def test_int8(oracle, how):
    graph = lstm_graph(OPERATOR, how, "int8")
    check_stream(oracle, graph, random_inputs(np.random.default_rng(how.seed), graph, 4))


def fills_registers(how: Lstm) -> Lstm:
    """Round the cells up to whole registers: TFLite then calls no function of the host's libm."""
    cells = -(-how.cells // 4) * 4
    return replace(how, cells=cells, outputs=how.outputs if how.projection else cells)


@pytest.mark.parametrize("kind", ["float", "hybrid"])
@kernel_settings
@given(how=lstms(), asymmetric=st.booleans())
def test_float_and_hybrid(oracle, kind, how, asymmetric):
    changes = {"asymmetric_quantize_inputs": asymmetric} if kind == "hybrid" else {}
    graph = lstm_graph(OPERATOR, fills_registers(how), kind, **changes)
    check_stream(oracle, graph, random_inputs(np.random.default_rng(how.seed), graph, 4))


@kernel_settings
@given(how=lstms())
def test_gates_that_do_not_fill_registers(oracle, how):
    graph = lstm_graph(OPERATOR, how, "float")
    inputs = random_inputs(np.random.default_rng(how.seed), graph, 4)
    check_known(oracle, graph, [x[:1] for x in inputs])


@pytest.mark.parametrize(("depth", "outputs", "batch"), [(8, 2, 2), (16, 1, 1), (37, 1, 1), (37, 1, 3), (300, 12, 3)])
def test_orders_of_float_sums(oracle, depth, outputs, batch):
    how = Lstm(batch, 3, depth, 12, outputs, projection=True, time_major=True, seed=depth)
    graph = lstm_graph(OPERATOR, how, "float")
    check_stream(oracle, graph, random_inputs(np.random.default_rng(1), graph, 8))


@pytest.mark.parametrize("kind", ["float", "hybrid"])
def test_diagonal_recurrent_weights(oracle, kind):
    graph = lstm_graph(OPERATOR, Lstm(2, 4, 7, 8, 8), kind)
    rng = np.random.default_rng(0)
    for t in graph.nodes[0].inputs[5:9]:
        data = rng.normal(0, 0.5, 8).astype(np.float32)
        graph.tensors[t] = Tensor(f"diagonal {t}", (8,), DType.FLOAT32, data=data)
    check_stream(oracle, graph, random_inputs(rng, graph, 6))


def test_an_activation_is_needed():
    with pytest.raises(UnsupportedError, match="leaves the cell gate unset"):
        lower(lstm_graph(OPERATOR, Lstm(), "float", fused_activation_function="none"))


@pytest.mark.parametrize("seed", range(3))
def test_layers_of_real_size(oracle, seed):
    how = Lstm(1, 12, 64, 128, 128, seed=seed)
    graph = lstm_graph(OPERATOR, how, "int8")
    check_stream(oracle, graph, random_inputs(np.random.default_rng(seed), graph, 3))


def test_intermediates_are_needed():
    graph = lstm_graph(OPERATOR, Lstm(), "int8")
    graph.nodes[0] = replace(graph.nodes[0], intermediates=None)
    with pytest.raises(GraphError, match="an LSTM of int8 needs 5"):
        lower(graph)


@pytest.mark.parametrize("scale", [2.0**-8, 2.0**-16, 0.0007])
def test_cell_scales_that_tflite_does_not_take(scale):
    graph = lstm_graph(OPERATOR, Lstm(), "int8")
    cell = graph.nodes[0].inputs[19]
    graph.tensors[cell] = replace(graph.tensors[cell], quantization=affine(INT16, scale))
    with pytest.raises(UnsupportedError, match="powers of two"):
        lower(graph)


def test_state_must_be_a_variable():
    graph = lstm_graph(OPERATOR, Lstm(), "int8")
    cell = graph.nodes[0].inputs[19]
    graph.tensors[cell] = replace(graph.tensors[cell], is_variable=False)
    with pytest.raises(GraphError, match="must be a variable"):
        lower(graph)

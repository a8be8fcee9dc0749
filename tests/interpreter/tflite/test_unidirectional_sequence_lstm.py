"""UNIDIRECTIONAL_SEQUENCE_LSTM against TFLite: int8 with int16 cells."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from tests.support.draw import INT16, affine, kernel_settings
from tests.support.lstm import Lstm, lstm_graph, lstms
from tests.support.single_op import check_stream, random_inputs
from tflq.errors import GraphError, UnsupportedError
from tflq.interpreter import lower

OPERATOR = "unidirectional_sequence_lstm"


@kernel_settings
@given(how=lstms())
def test_int8(oracle, how):
    graph = lstm_graph(OPERATOR, how, "int8")
    check_stream(oracle, graph, random_inputs(np.random.default_rng(how.seed), graph, 4))


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
    graph.tensors[cell] = replace(graph.tensors[cell], quantisation=affine(INT16, scale))
    with pytest.raises(UnsupportedError, match="powers of two"):
        lower(graph)


def test_state_must_be_a_variable():
    graph = lstm_graph(OPERATOR, Lstm(), "int8")
    cell = graph.nodes[0].inputs[19]
    graph.tensors[cell] = replace(graph.tensors[cell], is_variable=False)
    with pytest.raises(GraphError, match="must be a variable"):
        lower(graph)

"""Recurrent layers, which ONNX and OpenVINO have in other orders and with other operands."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from tests.interpreter.tflite.test_rnn import rnn_graph
from tests.support.lstm import Lstm, lstm_graph
from tests.support.onnx_run import run_onnx
from tests.support.openvino import Runtime, files_of
from tflq.converters.onnx import ONNX
from tflq.converters.openvino import OPENVINO
from tflq.converters.settings import parse_settings
from tflq.converters.targets import Target
from tflq.errors import UnsupportedError
from tflq.graph import Array, Graph, Model
from tflq.interpreter import Engine

LSTM, RNN = "unidirectional_sequence_lstm", "unidirectional_sequence_rnn"
ACTIVATIONS = ("tanh", "relu")


def check(target: Target, graph: Graph, inputs: list[Array], options: list[str]) -> None:
    written = target.quantize(graph, parse_settings(target.settings, options))
    ours = Engine(written, target.arithmetic, state="independent").run(inputs)[written.outputs[0]]
    files = target.emit(written, Model([graph], source="sequence.tflite"))
    if target is ONNX:
        (data,) = files.values()
        (theirs,) = run_onnx(data, inputs)
    else:
        (theirs,) = Runtime(*files_of(files)).run_all(inputs)
    assert theirs.shape == ours.shape
    assert np.allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def inputs_of(graph: Graph) -> list[Array]:
    return [np.random.default_rng(3).normal(size=(3, *graph.tensors[t].shape)).astype(np.float32) for t in graph.inputs]


@pytest.mark.parametrize("target", [ONNX, OPENVINO], ids=lambda t: t.name)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize(("cifg", "time_major", "batch"), [*product((False, True), (False, True), (1, 3))])
def test_lstm(target: Target, activation: str, cifg: bool, time_major: bool, batch: int) -> None:
    how = Lstm(cifg=cifg, time_major=time_major, batch=batch, cells=4, outputs=4)
    graph = lstm_graph(LSTM, how, "float", fused_activation_function=activation)
    check(target, graph, inputs_of(graph), [])


@pytest.mark.parametrize("cifg", [False, True])
def test_peepholes(cifg: bool) -> None:
    graph = lstm_graph(LSTM, Lstm(peephole=True, cifg=cifg, batch=2), "float")
    check(ONNX, graph, inputs_of(graph), [])
    with pytest.raises(UnsupportedError, match="an LSTM with peepholes; OpenVINO's LSTMSequence has none"):
        OPENVINO.quantize(graph, parse_settings(OPENVINO.settings))


def test_recurrent_weights_of_the_diagonal() -> None:
    graph = lstm_graph(LSTM, Lstm(cells=3, outputs=3), "float")
    node, draw = graph.nodes[0], np.random.default_rng(5)
    for t in node.inputs[5:9]:
        row = draw.normal(size=3).astype(np.float32)
        graph.tensors[t] = replace(graph.tensors[t], shape=(3,), data=row)
    for target in (ONNX, OPENVINO):
        check(target, graph, inputs_of(graph), [])


@pytest.mark.parametrize("target", [ONNX, OPENVINO], ids=lambda t: t.name)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize(("time_major", "batch"), [*product((False, True), (1, 3))])
def test_rnn(target: Target, activation: str, time_major: bool, batch: int) -> None:
    shape = (4, batch, 5) if time_major else (batch, 4, 5)
    graph = rnn_graph(RNN, "float", shape, 6, 1, time_major=time_major, fused_activation_function=activation)
    check(target, graph, inputs_of(graph), [])


@pytest.mark.parametrize(
    ("how", "words"),
    [
        (Lstm(norm=True), "layer normalization"),
        (Lstm(projection=True, outputs=3), "a projection"),
        (Lstm(clip=0.25), "clipped cells"),
    ],
)
def test_what_no_operator_has(how: Lstm, words: str) -> None:
    graph = lstm_graph(LSTM, how, "float")
    with pytest.raises(UnsupportedError, match=f"an LSTM with {words}, which no operator of the format has"):
        ONNX.quantize(graph, parse_settings(ONNX.settings))


def test_other_activations() -> None:
    for name in ("relu6", "none"):
        graph = rnn_graph(RNN, "float", (1, 4, 5), 6, 1, fused_activation_function=name)
        with pytest.raises(UnsupportedError, match=f"activation {name} of a recurrent layer; known are tanh, relu$"):
            ONNX.quantize(graph, parse_settings(ONNX.settings))


def test_weights_of_integers_are_written_in_float() -> None:
    for graph in (
        lstm_graph(LSTM, Lstm(), "hybrid"),
        rnn_graph(RNN, "hybrid", (1, 4, 5), 6, fused_activation_function="tanh"),
    ):
        check(ONNX, graph, inputs_of(graph), [])
    with pytest.raises(UnsupportedError, match="is int8; recurrent layers are written in float32: set form=float"):
        ONNX.quantize(lstm_graph(LSTM, Lstm(), "int8"), parse_settings(ONNX.settings, ["form=qdq"]))

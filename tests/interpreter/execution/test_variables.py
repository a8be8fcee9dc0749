"""Variable tensors that ordinary operators write, against TFLite as a stream and as independent samples."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.streaming import draw_streaming_network, judge_streaming_network
from tflq.errors import GraphError
from tflq.graph import DType, GraphBuilder
from tflq.interpreter import Engine

F32 = DType.FLOAT32


def test_an_ordinary_operator_stores_its_result_in_a_variable():
    """y = x - v; v = x for x = [1,2], [2,3], [3,4]: TFLite gives [1,2], [1,1], [1,1]."""
    b = GraphBuilder("difference")
    x, v = b.input("x", (1, 2), F32), b.variable("v", (1, 2), F32)
    y = b.add("sub", [x, v], (1, 2), F32, fused_activation_function="none")
    b.node("relu", [x], [v])
    graph = b.build([y, v])
    samples = np.array([[[1, 2]], [[2, 3]], [[3, 4]]], np.float32)
    stream = Engine(graph, state="stream").run([samples])
    assert stream[y].tolist() == [[[1, 2]], [[1, 1]], [[1, 1]]]
    assert np.array_equal(stream[v], samples)
    assert np.array_equal(Engine(graph, state="independent").run([samples])[y], samples)


def test_an_operator_that_reads_and_writes_a_variable_is_refused_as_tflite_does():
    b = GraphBuilder("overlap")
    x, v = b.input("x", (1, 2), F32), b.variable("v", (1, 2), F32)
    b.node("add", [x, v], [v], fused_activation_function="none")
    with pytest.raises(GraphError, match=r"operator 0 .* reads and writes tensor 1 'v'; use two operators"):
        b.build([v])


def test_drawn_networks_equal_tflite(oracle):
    verdicts = [(seed, verdict) for seed in range(40) for verdict in judge_streaming_network(seed, oracle)]
    assert [pair for pair in verdicts if not pair[1].is_named] == []
    assert sum(verdict.text == "equal" for _, verdict in verdicts) > 100


def test_drawn_networks_write_variables_and_read_them_before_and_after():
    graphs = [draw_streaming_network(seed) for seed in range(40)]
    writes = [[t for node in g.nodes for t in node.outputs if g.tensors[t].is_variable] for g in graphs]
    assert sum(bool(w) for w in writes) > 20
    assert sum(len(w) > len(set(w)) for w in writes) > 2
    assert sum(node.operator == "svdf" for g in graphs for node in g.nodes) > 2

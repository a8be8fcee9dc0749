"""Options that a node does not state: TFLite reads the schema's default, which the writer leaves out of the file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from tests.interpreter.tflite.test_borders import hybrid
from tests.interpreter.tflite.test_lstm import basic_graph
from tests.interpreter.tflite.test_pairs import pair
from tests.interpreter.tflite.test_rnn import rnn_graph
from tests.interpreter.tflite.test_svdf import svdf_graph
from tests.support.draw import affine, one_input
from tests.support.layers import Weighted, weighted_graph
from tests.support.lstm import Lstm, eight_bit_graph, lstm_graph
from tests.support.single_op import assert_same_bits, random_inputs
from tests.support.types import INT8, INT16
from tflq.converters.tflite import model_to_bytes
from tflq.converters.tflite.options import attributes_of, options_class
from tflq.graph import Attributes, DType, Graph
from tflq.interpreter import Engine
from tflq.oracle import Oracle

ONE, FINE = affine(INT16, 2.0**-8), affine(INT16, 2.0**-11)
HOW = Lstm(2, 3, 5, 8, 8, seed=3)


def unstated(graph: Graph) -> Graph:
    """Return the graph without the options that have the schema's default."""
    nodes = []
    for node in graph.nodes:
        table = options_class(node.operator)
        defaults = {} if table is None else attributes_of(table(), node.operator)
        kept = {name: value for name, value in node.attributes.items() if value != defaults[name]}
        nodes.append(replace(node, attributes=Attributes(kept)))
    return replace(graph, nodes=nodes)


def eight_bits(operator: str) -> Graph:
    return one_input(operator, (3, 256), (INT8, affine(INT8, 0.03, 5)), (INT8, affine(INT8, 0.02, -7)))


def two(operator: str) -> Graph:
    x, y, out = affine(INT8, 0.03, 5), affine(INT8, 0.02, -9), affine(INT8, 0.05, 3)
    return pair(operator, ((3, 50), (3, 50)), INT8, x, y, out)


GRAPHS: dict[str, Callable[[], Graph]] = {
    "gelu": lambda: eight_bits("gelu"),
    "leaky_relu": lambda: eight_bits("leaky_relu"),
    "softmax of int16": lambda: one_input(
        "softmax", (3, 9), (INT16, affine(INT16, 0.1)), (INT16, affine(INT16, 2.0**-15))
    ),
    "l2_normalization": lambda: one_input(
        "l2_normalization", (3, 9), (INT8, affine(INT8, 0.1, 4)), (INT8, affine(INT8, 1 / 128))
    ),
    **{operator: partial(two, operator) for operator in ("add", "sub", "mul", "squared_difference")},
    **{
        f"{operator} of int16, powers of two": partial(pair, operator, ((5, 50), (5, 50)), INT16, ONE, FINE, ONE)
        for operator in ("add", "sub")
    },
    "mul of int16": lambda: pair("mul", ((5, 50), (5, 50)), INT16, ONE, FINE, ONE),
    "fully_connected": lambda: weighted_graph(
        "fully_connected", Weighted(INT8, INT8, DType.INT32, seed=1), (3, 20), (6, 20), (3, 6)
    ),
    "fully_connected of int16": lambda: weighted_graph(
        "fully_connected", Weighted(INT16, INT8, DType.INT64, seed=1), (3, 20), (6, 20), (3, 6)
    ),
    "fully_connected of 3 axes": lambda: weighted_graph(
        "fully_connected", Weighted(INT8, INT8, None, seed=2), (2, 3, 20), (6, 20), (6, 6)
    ),
    **{
        f"hybrid {operator}": hybrid(operator, axis) for operator, axis in (("fully_connected", 0), ("batch_matmul", 1))
    },
    "svdf": lambda: svdf_graph("hybrid", (2, 9, 4, 2, 5), 1, "none"),
    "rnn": lambda: rnn_graph("rnn", "hybrid", (2, 9), 5),
    "unidirectional_sequence_rnn": lambda: rnn_graph("unidirectional_sequence_rnn", "hybrid", (2, 3, 9), 5),
    **{f"lstm, {kind}": partial(lstm_graph, "unidirectional_sequence_lstm", HOW, kind) for kind in ("int8", "hybrid")},
    "lstm, hybrid, one step": lambda: lstm_graph("lstm", replace(HOW, steps=0), "hybrid"),
    "lstm of 8 bits": lambda: eight_bit_graph(HOW),
    "basic lstm": lambda: basic_graph(1, 2, 5, 8, False),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_the_default_of_the_schema(oracle: Oracle, name: str) -> None:
    graph = unstated(GRAPHS[name]())
    inputs = random_inputs(np.random.default_rng(8), graph, 4)
    theirs = oracle.run(model_to_bytes(graph), inputs, tensors="outputs", state="independent")
    ours = Engine(graph, state="independent").run(inputs)
    for t in graph.outputs:
        assert_same_bits(ours[t], theirs.tensors[t], name)

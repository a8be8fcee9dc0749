"""RNN and UNIDIRECTIONAL_SEQUENCE_RNN against TFLite: float32 and hybrid."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import kernel_settings
from tests.support.lstm import Values
from tests.support.single_op import check_stream, random_inputs
from tests.support.types import FLOAT32
from tflq.errors import GraphError
from tflq.graph import Graph, GraphBuilder
from tflq.interpreter import lower

SEQUENCE = "unidirectional_sequence_rnn"


def rnn_graph(operator, kind, shape, units, seed=0, **attributes) -> Graph:
    b = GraphBuilder(operator)
    values = Values(b, kind, seed)
    batch = shape[1] if attributes.get("time_major") else shape[0]
    operands = [
        b.input("x", shape, FLOAT32),
        values.matrix("w", (units, shape[-1])),
        values.matrix("r", (units, units)),
        values.bias("b", units, 1.0),
        b.variable("h", (batch, units), FLOAT32),
    ]
    return b.build([b.add(operator, operands, (*shape[:-1], units), FLOAT32, version=3, **attributes)])


@pytest.mark.parametrize("kind", ["float", "hybrid"])
@pytest.mark.parametrize("operator", ["rnn", SEQUENCE])
@kernel_settings
@given(data=st.data(), units=st.integers(1, 20), inputs=st.integers(1, 40), seed=st.integers(0, 999))
def test_against_tflite(oracle, kind, operator, data, units, inputs, seed):
    batch, steps = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 5))
    changes = {"fused_activation_function": data.draw(st.sampled_from(["none", "relu", "relu6", "tanh"]))}
    shape = (batch, inputs)
    if operator == SEQUENCE:
        changes["time_major"] = data.draw(st.booleans())
        shape = (steps, batch, inputs) if changes["time_major"] else (batch, steps, inputs)
    if kind == "hybrid":
        changes["asymmetric_quantize_inputs"] = data.draw(st.booleans())
    graph = rnn_graph(operator, kind, shape, units, seed, **changes)
    check_stream(oracle, graph, random_inputs(np.random.default_rng(seed), graph, 4))


def test_shapes_that_do_not_fit():
    graph = rnn_graph("rnn", "float", (2, 4, 3), 5)
    with pytest.raises(GraphError, match="must have 2 axes"):
        lower(graph)

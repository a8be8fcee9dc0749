"""BIDIRECTIONAL_SEQUENCE_RNN against TFLite: float32 and hybrid, with and without a second input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.draw import kernel_settings
from tests.support.lstm import Values
from tests.support.single_op import check_stream, random_inputs
from tests.support.types import FLOAT32
from tflq.errors import UnsupportedError
from tflq.graph import ABSENT, Graph, GraphBuilder
from tflq.interpreter import lower

UNITS = (5, 9)


def graph_of(kind, shape, second=None, seed=0, **attributes) -> Graph:
    """`second` is None, "added" or "own"."""
    b = GraphBuilder("both")
    values = Values(b, kind, seed)
    batch = shape[1] if attributes.get("time_major") else shape[0]
    operands = [b.input("x", shape, FLOAT32)]
    for name, units in zip("fb", UNITS, strict=True):
        operands += [
            values.matrix(f"{name}w", (units, shape[-1])),
            values.matrix(f"{name}r", (units, units)),
            values.bias(f"{name}b", units, 1.0),
            b.variable(f"{name}h", (batch, units), FLOAT32),
        ]
    operands.append(ABSENT if second is None else b.input("a", shape, FLOAT32))
    operands += [values.matrix(f"a{u}", (u, shape[-1])) if second == "added" else ABSENT for u in UNITS]
    sizes = (sum(UNITS),) if attributes.get("merge_outputs") else UNITS
    outputs = [b.tensor(f"y{i}", (*shape[:-1], n), FLOAT32) for i, n in enumerate(sizes)]
    b.node("bidirectional_sequence_rnn", operands, outputs, 3, None, **attributes)
    return b.build(outputs)


@pytest.mark.parametrize("kind", ["float", "hybrid"])
@kernel_settings
@given(data=st.data(), inputs=st.integers(1, 20), seed=st.integers(0, 999))
def test_against_tflite(oracle, kind, data, inputs, seed):
    time_major, merge, asymmetric = (data.draw(st.booleans()) for _ in range(3))
    several = kind == "float" or asymmetric or not (time_major and merge)
    batch = data.draw(st.integers(1, 3)) if several else 1
    steps = data.draw(st.integers(1, 4))
    shape = (steps, batch, inputs) if time_major else (batch, steps, inputs)
    second = data.draw(st.sampled_from([None, "added", "own"]))
    activation = data.draw(st.sampled_from(["relu", "tanh"]))
    changes = {"asymmetric_quantize_inputs": asymmetric} if kind == "hybrid" else {}
    graph = graph_of(
        kind, shape, second, seed, time_major=time_major, merge_outputs=merge, fused_activation_function=activation,
        **changes,
    )  # fmt: skip
    check_stream(oracle, graph, random_inputs(np.random.default_rng(seed), graph, 4))


def test_a_null_pointer_of_tflite_is_refused():
    with pytest.raises(UnsupportedError, match="reads no address"):
        lower(graph_of("hybrid", (2, 3, 4), time_major=True, merge_outputs=True))

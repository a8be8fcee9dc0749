"""BIDIRECTIONAL_SEQUENCE_LSTM against TFLite: float32 and hybrid, with and without a second input."""

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

CELLS = (8, 8)
GATES = "ifco"


def direction(values: Values, name: str, inputs: int, cells: int, cifg: bool, peephole: bool) -> list[int]:
    """Return the 17 constants of one direction; cells fill whole registers."""
    absent = {"i"} if cifg else set()
    weights = [ABSENT if g in absent else values.matrix(f"{name}w{g}", (cells, inputs)) for g in GATES]
    recurrent = [ABSENT if g in absent else values.matrix(f"{name}r{g}", (cells, cells)) for g in GATES]
    seen = [ABSENT if g in absent or not peephole else values.matrix(f"{name}p{g}", (cells,)) for g in "ifo"]
    biases = [ABSENT if g in absent else values.bias(f"{name}b{g}", cells, 1.0) for g in GATES]
    return [*weights, *recurrent, *seen, *biases, ABSENT, ABSENT]


def graph_of(kind, shape, time_major=False, merge=False, second=None, cifg=False, peephole=False, seed=0,
             **attributes) -> Graph:  # fmt: skip
    """`second` is None, "added" or "own"."""
    b = GraphBuilder("both")
    values = Values(b, kind, seed)
    batch = shape[1] if time_major else shape[0]
    x = b.input("x", shape, FLOAT32)
    forward = direction(values, "f", shape[-1], CELLS[0], cifg, peephole)
    backward = direction(values, "b", shape[-1], CELLS[1], cifg, peephole)
    states = [b.variable(f"s{i}", (batch, c), FLOAT32) for i, c in enumerate((CELLS[0],) * 2 + (CELLS[1],) * 2)]
    other = ABSENT if second is None else b.input("a", shape, FLOAT32)
    extra = [
        ABSENT if second != "added" or (cifg and g == "i") else values.matrix(f"a{c}{g}", (c, shape[-1]))
        for c in CELLS
        for g in GATES
    ]
    sizes = (sum(CELLS),) if merge else CELLS
    outputs = [b.tensor(f"y{i}", (*shape[:-1], n), FLOAT32) for i, n in enumerate(sizes)]
    b.node(
        "bidirectional_sequence_lstm", [x, *forward, *backward, *states, other, *extra], outputs, 3, None,
        fused_activation_function="tanh", cell_clip=0.0, proj_clip=0.0, merge_outputs=merge, time_major=time_major,
        **attributes,
    )  # fmt: skip
    return b.build(outputs)


@pytest.mark.parametrize("kind", ["float", "hybrid"])
@kernel_settings
@given(data=st.data(), inputs=st.integers(1, 20), seed=st.integers(0, 999))
def test_against_tflite(oracle, kind, data, inputs, seed):
    time_major, merge, cifg, peephole, asymmetric = (data.draw(st.booleans()) for _ in range(5))
    batch = data.draw(st.integers(1, 3)) if time_major or not merge else 1
    steps = data.draw(st.integers(1, 4))
    shape = (steps, batch, inputs) if time_major else (batch, steps, inputs)
    second = data.draw(st.sampled_from([None, "added", "own"]))
    changes = {"asymmetric_quantize_inputs": asymmetric} if kind == "hybrid" else {}
    graph = graph_of(kind, shape, time_major, merge, second, cifg, peephole, seed, **changes)
    check_stream(oracle, graph, random_inputs(np.random.default_rng(seed), graph, 4))


def test_states_that_tflite_looks_for_behind_the_end():
    with pytest.raises(UnsupportedError, match="behind the end"):
        lower(graph_of("float", (2, 3, 4), merge=True))

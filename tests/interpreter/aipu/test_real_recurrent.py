"""GRUv1, GRUv3 and BasicLSTM on real numbers against onnxruntime's GRU and LSTM: steps, order of time, outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.converters.aipu.single_layers import OneLayer
from tests.support.onnx_run import run_onnx
from tflq.converters.aipu import graph_of
from tflq.graph import Array
from tflq.interpreter import Engine

SAMPLES, BATCH, STEPS, COLUMNS, CELLS = 3, 2, 4, 3, 5
GATES = {"gru_v1": 3, "gru_v3": 3, "basic_lstm": 4}
ORDERS = {"gru_v1": "rzh", "gru_v3": "rzh", "basic_lstm": "icfo"}
"""Gates of Compass's rows; onnx has z, r, h and i, o, f, c."""


def _drawn(operator: str) -> tuple[Array, Array, Array, list[Array]]:
    """Weights, biases (GRUv1: those of the hidden candidate behind), inputs, first states: all of them different."""
    draw = np.random.default_rng(7)
    rows = GATES[operator] * CELLS
    states = [draw.normal(0, 1, (SAMPLES, BATCH, CELLS)) for _ in range(GATES[operator] - 2)]
    drawn = (
        draw.normal(0, 0.7, (rows, COLUMNS + CELLS)),
        draw.normal(0, 0.7, rows + (CELLS if operator == "gru_v1" else 0)),
        draw.normal(0, 1, (SAMPLES, BATCH, STEPS, COLUMNS)),
    )
    return (*(a.astype(np.float32) for a in drawn), [s.astype(np.float32) for s in states])  # type: ignore[return-value]


def _in_order(rows: Array, operator: str) -> Array:
    """Blocks of rows, one a gate, in onnx's order."""
    blocks = dict(zip(ORDERS[operator], np.split(rows, GATES[operator]), strict=True))
    return np.concatenate([blocks[gate] for gate in ("iofc" if operator == "basic_lstm" else "zrh")])


def _by_onnxruntime(operator: str, is_backward: bool, forget: float) -> dict[str, Array]:
    onnx = pytest.importorskip("onnx", reason="onnx is not installed: it comes with tflq[onnx]")
    weights, biases, x, states = _drawn(operator)
    biases = biases.copy()
    own, hidden = biases[: GATES[operator] * CELLS], np.zeros(GATES[operator] * CELLS, np.float32)
    if operator == "gru_v1":
        hidden[-CELLS:] = biases[-CELLS:]
    if operator == "basic_lstm":
        own[2 * CELLS : 3 * CELLS] += np.float32(forget)
    ordered = _in_order(weights, operator)
    constants = {
        "w": ordered[None, :, :COLUMNS],
        "r": ordered[None, :, COLUMNS:],
        "b": np.concatenate([_in_order(own, operator), hidden])[None],
    }
    keys: dict[str, Any] = {"hidden_size": CELLS, "direction": "reverse" if is_backward else "forward"}
    if operator != "basic_lstm":
        keys["linear_before_reset"] = int(operator == "gru_v1")
    names = ["h0", "c0"][: len(states)]
    kind, results = ("LSTM", ["y", "h", "c"]) if operator == "basic_lstm" else ("GRU", ["y", "h"])
    node = onnx.helper.make_node(kind, ["x", "w", "r", "b", "", *names], results, **keys)
    float32, helper = onnx.TensorProto.FLOAT, onnx.helper
    shapes = {"x": (STEPS, BATCH, COLUMNS), **dict.fromkeys(names, (1, BATCH, CELLS))}
    sizes = [(STEPS, 1, BATCH, CELLS), (1, BATCH, CELLS), (1, BATCH, CELLS)]
    graph = helper.make_graph(
        [node],
        kind,
        [helper.make_tensor_value_info(name, float32, shape) for name, shape in shapes.items()],
        [helper.make_tensor_value_info(name, float32, shape) for name, shape in zip(results, sizes, strict=False)],
        [onnx.numpy_helper.from_array(np.ascontiguousarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    given = [x.transpose(0, 2, 1, 3), *(state[:, None] for state in states)]
    y, *last = run_onnx(model.SerializeToString(), given, in_layout=False)
    every = y[:, :, 0].transpose(0, 2, 1, 3)
    if operator != "basic_lstm":
        return {"H": every, "Hn": last[0][:, 0]}
    return {"Y": every, "H": last[0][:, 0], "C": last[1][:, 0]}


def _by_tflq(operator: str, words: tuple[str, ...], is_backward: bool, forget: float | None) -> list[Array]:
    weights, biases, x, states = _drawn(operator)
    every, state = (BATCH, STEPS, CELLS), (BATCH, CELLS)
    whole = "Y" if operator == "basic_lstm" else "H"
    keys: dict[str, Any] = {"time_steps": STEPS, "input_size": COLUMNS, "cell_size": CELLS}
    keys |= {"activations": ("SIGMOID", "TANH", "TANH")[: GATES[operator] - 1], "out_sequence": words}
    keys |= {"direction": "reverse"} if is_backward else {}
    keys |= {} if forget is None else {"forget_bias": forget}
    outputs = [every if word == whole else state for word in words]
    given = {"weights": weights, "biases": biases}
    read = graph_of(OneLayer(operator, [v.shape[1:] for v in (x, *states)], outputs, keys, given=given).network())
    found = Engine(read).run([x, *states])
    return [found[t] for t in read.outputs]


@pytest.mark.parametrize("is_backward", [False, True])
@pytest.mark.parametrize(
    ("operator", "words", "forget"),
    [
        ("gru_v1", ("H",), None),
        ("gru_v1", ("Hn",), None),
        ("gru_v1", ("Hn", "H"), None),
        ("gru_v3", ("H", "Hn"), None),
        ("gru_v3", ("Hn",), None),
        ("basic_lstm", ("Y", "H", "C"), 1.0),
        ("basic_lstm", ("Y",), None),
        ("basic_lstm", ("H",), -0.5),
        ("basic_lstm", ("C", "Y"), 0.0),
    ],
)
def test_the_steps_are_onnxruntimes(
    operator: str, words: tuple[str, ...], forget: float | None, is_backward: bool
) -> None:
    wanted = _by_onnxruntime(operator, is_backward, forget or 0.0)
    for word, found in zip(words, _by_tflq(operator, words, is_backward, forget), strict=True):
        np.testing.assert_allclose(found, wanted[word], rtol=0, atol=1e-6, err_msg=word)

"""Random single operators of the conformance table as IR, in OpenVINO's runtime."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.support.data import data_files, data_path
from tests.support.exchange import cells, judged, wrongly_refused
from tests.support.lstm import Lstm, lstm_graph
from tests.support.openvino import Runtime, channels_first, files_of, sums_saturate
from tflq.converters.calibration import calibrate
from tflq.converters.openvino import OPENVINO
from tflq.converters.openvino.emit import supported_operators
from tflq.converters.settings import parse_settings
from tflq.converters.settled import settled_model
from tflq.converters.tflite import read_model
from tflq.graph import Array, DType, Graph, GraphBuilder, Model
from tflq.interpreter import Engine
from tflq.sampling import RandomSamples

REFUSED = {
    **dict.fromkeys(("add", "sub"), "the model takes float32|input 'x1' is float32"),
    "cast": r"a value of (complex64|float64|u?int16|uint32); float32,",
    **dict.fromkeys(("resize_bilinear", "resize_nearest_neighbor", "prelu"), "'x1' is computed at run time"),
    "gather": "batch axes; axis . can be written",
    "non_max_suppression_v4": "an overlap of 0",
    "non_max_suppression_v5": "soft suppression|an overlap of 0",
    "padv2": "'x2' is computed at run time|by a value that float32 does not hold",
    "prelu": "'x1' is computed at run time|slopes of shape",
    "segment_sum": "segments of int32 .* float32 can be written",
    "strided_slice": "without elements",
    "topk_v2": "a value of int16; float32,|the 0 largest values",
    "unidirectional_sequence_lstm": "an LSTM with (layer normalization|a projection|clipped cells|peepholes)",
    "unidirectional_sequence_rnn": "activation (none|relu6|relu_n1_to_1) of a recurrent layer",
}
"""What a random operator may be refused for: docs/targets/openvino.md lists it."""


def run(graph: Graph, model: Model, inputs: Sequence[Array]) -> list[Array]:
    runtime = Runtime(*files_of(OPENVINO.emit(graph, model)))
    found = runtime.run_all([channels_first(np.asarray(x)) for x in inputs])
    return [x.transpose(0, 1, 3, 4, 2) if x.ndim == 5 else x for x in found]


@pytest.mark.parametrize("entry", cells(supported_operators(), ("float32", "int32", "bool")), ids=lambda e: str(e.cell))
def test_operators_without_levels(entry) -> None:
    settings = parse_settings(OPENVINO.settings, ["precision=float"])
    found = list(judged(entry, OPENVINO, lambda g: OPENVINO.quantize(g, settings), run, 3, 2))
    assert not [f for f in found if f.is_wrong]
    assert wrongly_refused(found, REFUSED) == []


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("operator", ["reduce_max", "reduce_min"])
def test_extremes_of_reals_in_front_of_levels(operator: str, keep: bool) -> None:
    """The plug-in computes other values where a FakeQuantize stands directly behind ReduceMax of float32."""
    if sums_saturate():
        pytest.skip("no VNNI: OpenVINO's sums of two products saturate at int16 there")
    b, draw = GraphBuilder("extreme"), np.random.default_rng(1)
    x = b.input("x", (1, 6, 6, 8), DType.FLOAT32)
    y = b.add("tanh", [x], (1, 6, 6, 8), DType.FLOAT32)
    shape = (1, 1, 1, 8) if keep else (1, 8)
    y = b.add(operator, [y, b.constant("axes", np.array([1, 2], np.int32))], shape, DType.FLOAT32, keep_dims=keep)
    weights = b.constant("w", draw.normal(size=(4, 8)).astype(np.float32))
    y = b.add("fully_connected", [y, weights], (1, 4), DType.FLOAT32, keep_num_dims=False)
    graph = b.build([y])
    data = draw.normal(size=(8, 1, 6, 6, 8)).astype(np.float32)
    engine = Engine(OPENVINO.quantize(calibrate(graph, [data]), parse_settings(OPENVINO.settings)), OPENVINO.arithmetic)
    (theirs,) = run(engine.graph, Model([graph], source="extreme.tflite"), [data])
    assert np.allclose(engine.run([data])[engine.graph.outputs[0]], theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("how", [Lstm(), Lstm(cifg=True, batch=2), Lstm(time_major=True, batch=3)], ids=str)
def test_recurrent_layers_between_levels(how: Lstm) -> None:
    graph = lstm_graph("unidirectional_sequence_lstm", how, "float")
    data = np.random.default_rng(3).normal(size=(4, *graph.tensors[graph.inputs[0]].shape)).astype(np.float32)
    written = OPENVINO.quantize(graph, parse_settings(OPENVINO.settings))
    ours = Engine(written, OPENVINO.arithmetic, state="independent").run([data])[written.outputs[0]]
    (theirs,) = run(written, Model([graph], source="sequence.tflite"), [data])
    assert np.allclose(ours, theirs, rtol=1e-5, atol=1e-5)


MODELS = data_files("corpus", "single_op_float")[::8]


@pytest.mark.parametrize("path", MODELS or [None], ids=[p.stem for p in MODELS] or ["no data"])
def test_operators_between_levels(path) -> None:
    model = settled_model(read_model(path or data_path("corpus", "single_op_float")))
    ranged = calibrate(model.main, RandomSamples(model.main, 8, seed=1).take(0, 8))
    inputs = RandomSamples(model.main, 2, seed=3).take(0, 2)
    engine = Engine(OPENVINO.quantize(ranged, parse_settings(OPENVINO.settings)), OPENVINO.arithmetic)
    ours = engine.run(inputs)
    for t, other in zip(engine.graph.outputs, run(engine.graph, model, inputs), strict=True):
        assert np.allclose(ours[t], other, rtol=1e-5, atol=1e-5 * float(np.abs(ours[t]).max()))

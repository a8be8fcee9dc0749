"""The float view computes what the integers stand for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.data import data_files, data_path
from tflq.benchmarks.accuracy import load, predictions
from tflq.benchmarks.tasks import find_task
from tflq.converters.tflite import model_from_bytes, model_to_bytes, read_model
from tflq.diagnosis.difference import compare
from tflq.errors import GraphError
from tflq.graph import (
    Affine,
    Blockwise,
    DType,
    Graph,
    GraphBuilder,
    Quantization,
    Tensor,
    dequantize,
    float_view,
    validate,
)
from tflq.interpreter import Engine
from tflq.oracle import Oracle
from tflq.sampling import RandomSamples

MODELS = data_files("models")
every_model = pytest.mark.parametrize("path", MODELS or [None], ids=[path.stem for path in MODELS] or ["no data"])
SCALE = Affine.per_tensor(np.float32(0.5), 3)


def dense(weights_quantization: Affine) -> Graph:
    """float -> QUANTIZE -> FULLY_CONNECTED -> DEQUANTIZE -> float."""
    b = GraphBuilder()
    x = b.input("x", (1, 2), DType.FLOAT32)
    q = b.add("quantize", [x], (1, 2), DType.INT8, SCALE)
    w = b.constant("w", np.array([[1, -2], [3, 4]], np.int8), weights_quantization)
    bias = b.constant("b", np.array([8, -8], np.int32), Affine.per_tensor(np.float32(0.125), bits=32))
    y = b.add("fully_connected", [q, w, bias], (1, 2), DType.INT8, SCALE)
    return b.build([b.add("dequantize", [y], (1, 2), DType.FLOAT32)])


def test_constants_are_dequantized_and_conversions_go() -> None:
    per_axis = Affine(np.array([0.25, 2.0], np.float32), np.array([0, 0]), axis=0)
    view = float_view(dense(per_axis))
    validate(view)
    (node,) = view.nodes
    assert node.operator == "fully_connected"
    assert node.inputs[0] == view.inputs[0]
    assert view.outputs == node.outputs
    weights, bias = (view.tensors[t].data for t in node.inputs[1:])
    assert weights.tolist() == [[0.25, -0.5], [6.0, 8.0]]
    assert bias.tolist() == [1.0, -1.0]
    assert {view.tensors[t].dtype for t in (*node.inputs, *node.outputs)} == {DType.FLOAT32}


def test_the_graph_itself_does_not_change() -> None:
    graph = dense(SCALE)
    float_view(graph)
    assert graph.tensors == dense(SCALE).tensors
    assert graph.nodes == dense(SCALE).nodes


def test_shapes_and_indices_stay() -> None:
    b = GraphBuilder()
    x = b.input("x", (2, 3), DType.INT8, SCALE)
    shape = b.constant("shape", np.array([3, 2], np.int32))
    view = float_view(b.build([b.add("reshape", [x, shape], (3, 2), DType.INT8, SCALE)]))
    assert view.tensors[shape].dtype is DType.INT32
    assert view.tensors[view.outputs[0]].dtype is DType.FLOAT32


def test_scales_that_do_not_fit_are_refused() -> None:
    with pytest.raises(GraphError, match=r"tensor 'w': 3 scales along axis 0 do not fit a tensor of shape \(2, 2\)"):
        float_view(with_weights(dense(SCALE), Affine(np.ones(3, np.float32), np.zeros(3, np.int64), axis=0)))


def with_weights(graph: Graph, quantization: Quantization) -> Graph:
    (w,) = (i for i, t in enumerate(graph.tensors) if t.name == "w")
    graph.tensors[w] = replace(graph.tensors[w], quantization=quantization)
    return graph


def test_weights_in_blocks() -> None:
    graph = dense(SCALE)
    scales = graph.add_tensor(Tensor("s", (2, 1), DType.FLOAT16, data=np.array([[0.5], [2]], np.float16)))
    view = float_view(with_weights(graph, Blockwise(scales, -1, 2)))
    assert view.tensors[view.nodes[0].inputs[1]].data.tolist() == [[0.5, -1.0], [6.0, 8.0]]


def test_a_bias_without_a_scale_has_that_of_the_accumulator() -> None:
    b = GraphBuilder()
    x = b.input("x", (1, 1), DType.INT8, SCALE)
    bias = b.constant("b", np.array([8, -8], np.int32))
    outputs = []
    for factor in (0.25, 0.25, 2.0):
        quantization = Affine(np.array([factor, 4 * factor], np.float32), np.array([0, 0]), 0)
        w = b.constant("w", np.ones((2, 1), np.int8), quantization)
        outputs.append(b.add("fully_connected", [x, w, bias], (1, 2), DType.INT8, SCALE))
    graph = b.build(outputs)
    view = float_view(graph)
    validate(view)
    biases = [node.inputs[2] for node in view.nodes]
    assert [view.tensors[t].data.tolist() for t in biases] == [[1, -4], [1, -4], [8, -32]]
    assert biases[0] == biases[1] == bias
    assert graph.tensors[bias].dtype is DType.INT32


def test_fake_quantization_goes() -> None:
    b = GraphBuilder()
    x = b.input("x", (2,), DType.FLOAT32)
    y = b.add("fake_quant", [x], (2,), DType.FLOAT32, min=-1.0, max=1.0, num_bits=8, narrow_range=False)
    view = float_view(b.build([b.add("relu", [y], (2,), DType.FLOAT32)]))
    (node,) = view.nodes
    assert (node.operator, node.inputs) == ("relu", view.inputs)


def test_kws_is_as_accurate_as_the_int8_model() -> None:
    """The int8 model has 901 of 1000 right."""
    graph = read_model(data_path("models", "kws_ref_model.tflite")).main
    labeled = load(find_task("kws01"), data_path("datasets", "kws01"), graph)
    view = float_view(graph)
    (codes,) = labeled.samples.take(0, 1000)
    clips = dequantize(codes, graph.tensors[graph.inputs[0]].affine).astype(np.float32)
    found = predictions(Engine(view, "float").run([clips])[view.outputs[0]])
    assert np.count_nonzero(found == labeled.labels) == 902


@every_model
def test_tflite_computes_the_same_bits_from_the_written_view(path: Path | None, oracle: Oracle) -> None:
    path = path or data_path("models")
    content = model_to_bytes(float_view(read_model(path).main))
    written = model_from_bytes(content, path.name).main
    samples = RandomSamples(written, 1).take(0, 1)
    judged = oracle.run(content, samples)
    ours = Engine(written, "float").run(samples, [t for node in written.nodes for t in node.outputs])
    assert ours.keys() <= judged.tensors.keys()
    for t, array in ours.items():
        assert compare(array, judged.tensors[t]).is_equal, written.tensors[t].name


def test_dequantize_does_not_wrap() -> None:
    codes = np.array([-128, 127], np.int8)
    assert dequantize(codes, Affine.per_tensor(np.float32(1), 127)).tolist() == [-255.0, 0.0]


@every_model
def test_every_reference_model_has_one(path: Path | None) -> None:
    view = float_view(read_model(path or data_path("models")).main)
    validate(view)
    kinds = {view.tensors[t].dtype for node in view.nodes for t in node.outputs}
    assert kinds == {DType.FLOAT32}

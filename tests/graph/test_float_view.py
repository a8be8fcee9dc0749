"""The float view computes what the integers stand for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.data import data_files
from tflq.converters.tflite import read_model
from tflq.errors import GraphError
from tflq.graph import Affine, DType, Graph, GraphBuilder, validate
from tflq.graph.float_view import dequantise, float_view

SCALE = Affine.per_tensor(np.float32(0.5), 3)


def dense(weights_quantisation: Affine) -> Graph:
    """float -> QUANTIZE -> FULLY_CONNECTED -> DEQUANTIZE -> float."""
    b = GraphBuilder()
    x = b.input("x", (1, 2), DType.FLOAT32)
    q = b.add("quantize", [x], (1, 2), DType.INT8, SCALE)
    w = b.constant("w", np.array([[1, -2], [3, 4]], np.int8), weights_quantisation)
    bias = b.constant("b", np.array([8, -8], np.int32), Affine.per_tensor(np.float32(0.125), bits=32))
    y = b.add("fully_connected", [q, w, bias], (1, 2), DType.INT8, SCALE)
    return b.build([b.add("dequantize", [y], (1, 2), DType.FLOAT32)])


def test_constants_are_dequantised_and_conversions_go() -> None:
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
        float_view(dense(Affine(np.ones(3, np.float32), np.zeros(3, np.int64), axis=0)))


def test_dequantise_does_not_wrap() -> None:
    codes = np.array([-128, 127], np.int8)
    assert dequantise(codes, Affine.per_tensor(np.float32(1), 127)).tolist() == [-255.0, 0.0]


@pytest.mark.parametrize("path", data_files("models"), ids=lambda path: path.stem)
def test_every_reference_model_has_one(path: Path) -> None:
    view = float_view(read_model(path).main)
    validate(view)
    kinds = {view.tensors[t].dtype for node in view.nodes for t in node.outputs}
    assert kinds == {DType.FLOAT32}

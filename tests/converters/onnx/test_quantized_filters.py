"""Filters between QuantizeLinear and DequantizeLinear, with one scale or one a channel: TFLite but for one step."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.support.onnx_run import run_onnx
from tflq.converters.onnx import ONNX
from tflq.converters.settings import parse_settings
from tflq.graph import Affine, DType, Graph, GraphBuilder, Model
from tflq.interpreter import Engine

onnx = pytest.importorskip("onnx", reason="onnx is not installed: it comes with tflq[onnx]")

WINDOW: dict[str, Any] = {"padding": "same", "stride_h": 2, "stride_w": 1}
CHANNELS = 5
FILTERS: dict[str, tuple[tuple[int, ...], tuple[int, ...], int, tuple[int, ...]]] = {
    "conv_2d": ((1, 4, 3, 2), (5, 3, 2, 2), 0, (1, 2, 3, 5)),
    "depthwise_conv_2d": ((1, 4, 3, 5), (1, 3, 2, 5), 3, (1, 2, 3, 5)),
    "fully_connected": ((2, 6), (5, 6), 0, (2, 5)),
    "transpose_conv": ((1, 2, 3, 2), (5, 3, 2, 2), 0, (1, 4, 3, 5)),
}
"""Shapes of input and weights, axis of the output channels, shape of the output."""
BIASES = {DType.INT8: DType.INT32, DType.INT16: DType.INT64}
STEP = np.float32(0.05)


def filter_graph(operator: str, dtype: DType, each: bool, has_bias: bool) -> Graph:
    shape, filters, axis, output = FILTERS[operator]
    b, draw = GraphBuilder(operator), np.random.default_rng([len(operator), each, has_bias])
    scale = draw.uniform(0.002, 0.02, CHANNELS if each else 1).astype(np.float32)
    zeros = np.zeros(scale.size, np.int64)
    x = b.input("x", shape, dtype, Affine.per_tensor(STEP, 3 if dtype is DType.INT8 else 0, dtype.bits))
    weights = draw.integers(-127, 128, filters).astype(np.int8)
    w = b.constant("w", weights, Affine(scale, zeros, axis if each else None))
    given = [b.constant("size", np.array(output, np.int32)), w, x] if operator == "transpose_conv" else [x, w]
    if has_bias:
        kind = BIASES[dtype]
        numbers = draw.integers(-2000, 2000, CHANNELS).astype(kind.storage)
        given.append(b.constant("b", numbers, Affine(scale * STEP, zeros, 0 if each else None, kind.bits)))
    more = {"depthwise_conv_2d": {"depth_multiplier": 1}}.get(operator, {})
    options = {} if operator == "fully_connected" else {**WINDOW, **more}
    rule = Affine.per_tensor(np.float32(0.15), -4 if dtype is DType.INT8 else 0, dtype.bits)
    return b.build([b.add(operator, given, output, dtype, rule, **options)])


@pytest.mark.parametrize("operator", FILTERS)
@pytest.mark.parametrize(("dtype", "each", "has_bias"), [*product(BIASES, (False, True), (False, True))])
def test_within_one_step(operator: str, dtype: DType, each: bool, has_bias: bool) -> None:
    graph = filter_graph(operator, dtype, each, has_bias)
    opset = "opset=21" if dtype is DType.INT16 else "opset=13"
    written = ONNX.quantize(graph, parse_settings(ONNX.settings, ["form=qdq", opset]))
    (data,) = ONNX.emit(written, Model([graph])).values()
    draw = np.random.default_rng(7)
    codes = draw.integers(-99, 99, (6, *graph.tensors[graph.inputs[0]].shape)).astype(dtype.storage)
    ours = Engine(graph, "tflite").run([codes])[graph.outputs[0]]
    (theirs,) = run_onnx(data, [codes])
    assert theirs.shape == ours.shape
    assert np.abs(theirs.astype(int) - ours).max() <= 1
    assert np.unique(ours).size > 20


@pytest.mark.parametrize("operator", FILTERS)
def test_constants_stay_the_numbers_of_the_file(operator: str) -> None:
    """Weights and bias are integers with the scales of the file, along the axis that their channels have."""
    graph = filter_graph(operator, DType.INT8, each=True, has_bias=True)
    written = ONNX.quantize(graph, parse_settings(ONNX.settings, ["form=qdq"]))
    (data,) = ONNX.emit(written, Model([graph])).values()
    model = onnx.load_from_string(data)
    values = {i.name: onnx.numpy_helper.to_array(i) for i in model.graph.initializer}
    for tensor in (t for t in graph.tensors if t.name in ("w", "b")):
        (node,) = (n for n in model.graph.node if n.input[0].partition("_")[0] == tensor.name)
        stored, scale = values[node.input[0]], values[node.input[1]]
        (axis,) = (a.i for a in node.attribute if a.name == "axis")
        assert (node.op_type, len(node.input)) == ("DequantizeLinear", 3 if tensor.name == "w" else 2)
        assert np.array_equal(scale, tensor.affine.scale)
        assert stored.dtype == tensor.dtype.storage
        mine = np.moveaxis(tensor.data, tensor.affine.axis, 0)
        for theirs, one in zip(np.moveaxis(stored, axis, 0), mine, strict=True):
            assert sorted(theirs.reshape(-1)) == sorted(one.reshape(-1))

"""The five MLPerf Tiny networks in onnxruntime: float against our float view, Q/DQ layer by layer against TFLite."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.support.data import data_path
from tests.support.onnx_run import run_onnx
from tflq.converters.onnx import ONNX
from tflq.converters.settings import Settings, parse_settings
from tflq.converters.tflite import read_model
from tflq.graph import Array, Graph, Model, Tensor, dequantize, float_view
from tflq.interpreter import Engine
from tflq.oracle import Oracle

NETWORKS = ("kws_ref_model", "pretrainedResnet_quant", "vww_96_int8", "ad01_int8", "str_ww_ref_model")
FLOAT_SHARE = 1e-5
"""Largest difference of a float output, as a share of the output's range."""
MOST_OFF = 0.003
"""Share of a network's elements that may be off by one; docs/targets/onnx.md has the figures."""


def settings(form: str) -> Settings:
    return parse_settings(ONNX.settings, [f"form={form}"])


def samples_for(name: str, tensor: Tensor, count: int) -> Array:
    """Keyword clips for that network, any quantized values for the others."""
    if name == "kws_ref_model":
        files = sorted(data_path("datasets", "kws01").glob("*.bin"))[:count]
        return np.stack([np.fromfile(path, np.int8).reshape(tensor.shape) for path in files])
    return np.random.default_rng(0).integers(-128, 127, (count, *tensor.shape), np.int8, endpoint=True)


def loaded(name: str, count: int) -> tuple[Model, Array]:
    model = read_model(data_path("models", f"{name}.tflite"))
    return model, samples_for(name, model.main.tensors[model.main.inputs[0]], count)


@pytest.mark.parametrize("name", NETWORKS)
def test_float(name: str) -> None:
    model, codes = loaded(name, 8)
    affine = model.main.tensors[model.main.inputs[0]].affine
    real = dequantize(codes, affine).astype(np.float32)
    view = ONNX.quantize(model.main, settings("float"))
    (file,) = ONNX.emit(view, model).items()
    assert file[0] == f"{name}.onnx"
    (theirs,) = run_onnx(file[1], [real])
    ours = Engine(float_view(model.main), "float").run([real])[model.main.outputs[0]]
    distance = float(np.abs(ours.astype(np.float64) - theirs).max())
    assert distance <= FLOAT_SHARE * float(np.ptp(ours))


def layer(graph: Graph, index: int) -> Graph:
    """Return one operator as a graph."""
    node = graph.nodes[index]
    inputs = dict.fromkeys(t for t in node.inputs if t >= 0 and not graph.tensors[t].is_constant)
    return Graph(graph.tensors, [node], tuple(inputs), node.outputs, node.name)


@pytest.mark.parametrize("name", NETWORKS)
def test_each_layer_with_quantize_and_dequantize(
    name: str, oracle: Oracle, record_property: Callable[[str, object], None]
) -> None:
    model, codes = loaded(name, 4)
    content = data_path("models", f"{name}.tflite").read_bytes()
    judged = oracle.run(content, [codes]).tensors
    judged = {**judged, model.main.inputs[0]: codes}
    off = elements = 0
    for index, node in enumerate(model.main.nodes):
        one = layer(model.main, index)
        (data,) = ONNX.emit(ONNX.quantize(one, settings("qdq")), model).values()
        (found,) = run_onnx(data, [judged[t] for t in one.inputs])
        steps = np.abs(found.astype(np.int64) - judged[node.outputs[0]])
        assert steps.max() <= 1, node.name
        off, elements = off + int(np.count_nonzero(steps)), elements + steps.size
    record_property("share_of_elements_off_by_one", off / elements)
    assert off / elements <= MOST_OFF


def test_quantized_ports_keep_their_codes() -> None:
    model, codes = loaded("ad01_int8", 2)
    (data,) = ONNX.emit(ONNX.quantize(model.main, settings("qdq")), model).values()
    (found,) = run_onnx(data, [codes])
    assert found.dtype == np.int8


@pytest.mark.parametrize("form", ["float", "qdq"])
@pytest.mark.parametrize("name", ["kws_ref_model", "str_ww_ref_model"])
def test_every_value_has_its_shape(name: str, form: str) -> None:
    onnx = pytest.importorskip("onnx", reason="onnx is not installed: it comes with tflq[onnx]")
    model, _ = loaded(name, 1)
    (content,) = ONNX.emit(ONNX.quantize(model.main, settings(form)), model).values()
    found = onnx.load_model_from_string(content)
    onnx.checker.check_model(found, full_check=True)
    typed = {v.name: v.type.tensor_type for v in (*found.graph.value_info, *found.graph.input, *found.graph.output)}
    written = [name for node in found.graph.node for name in node.output]
    assert [name for name in written if name not in typed] == []
    shapes = [[axis.dim_value for axis in typed[name].shape.dim] for name in written]
    assert all(min(shape, default=1) > 0 for shape in shapes), shapes

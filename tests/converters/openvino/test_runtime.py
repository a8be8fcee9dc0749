"""What the CPU plug-in makes of the emitted IR: int8 wherever it matters, and our outputs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.support.data import data_path
from tests.support.kws import clips, right
from tests.support.openvino import Runtime, channels_first, converted
from tflq.converters.calibration import calibrate
from tflq.converters.openvino import OPENVINO
from tflq.converters.openvino.reader import model_from_bytes
from tflq.converters.settings import parse_settings
from tflq.converters.tflite import read_model
from tflq.graph import Array, DType, GraphBuilder, Model, Tensor
from tflq.interpreter import Engine

MODELS = {
    "kws_ref_model": 10,
    "ad01_int8": 10,
    "pretrainedResnet_quant": 10,
    "str_ww_ref_model": 9,
    "vww_96_int8": 28,
}
"""The five models of MLPerf Tiny: convolutions and products that each has."""
CODES = ["input=int8", "output=int8"]


def samples(tensor: Tensor, count: int) -> Array:
    """Return random quantized values."""
    return np.random.default_rng(1).integers(-128, 128, (count, *tensor.shape), np.int64).astype(np.int8)


@pytest.mark.parametrize("assignments", [[], CODES], ids=["float", "codes"])
@pytest.mark.parametrize("name", MODELS)
def test_every_filter_runs_in_int8(
    name: str, assignments: list[str], record_property: Callable[[str, object], None]
) -> None:
    model = read_model(data_path("models", f"{name}.tflite"))
    _, xml, weights = converted(model, assignments)
    runtime = Runtime(xml, weights)
    found = runtime.in_integers()
    record_property("processor", runtime.processor)
    assert len(found) == MODELS[name]
    assert all(found), f"OpenVINO {runtime.version} on {runtime.processor}"


@pytest.mark.parametrize("name", [n for n in MODELS if n != "pretrainedResnet_quant"])
def test_bytes_in_and_out_equal_the_runtime(name: str) -> None:
    model = read_model(data_path("models", f"{name}.tflite"))
    engine, xml, weights = converted(model, CODES)
    graph = engine.graph
    x = samples(graph.tensors[graph.inputs[0]], 16)
    assert np.array_equal(engine.run([x])[graph.outputs[0]], Runtime(xml, weights).run_exactly([x]))


def test_the_residual_network_has_the_runtimes_classes() -> None:
    """Random pixels: some accumulators lie at halves, where the runtime's float32 decides otherwise."""
    model = read_model(data_path("models", "pretrainedResnet_quant.tflite"))
    engine, xml, weights = converted(model, CODES)
    graph = engine.graph
    x = samples(graph.tensors[graph.inputs[0]], 16)
    ours, theirs = engine.run([x])[graph.outputs[0]], Runtime(xml, weights).run_exactly([x])
    assert np.array_equal(ours.reshape(16, -1).argmax(axis=1), theirs.reshape(16, -1).argmax(axis=1))


@pytest.mark.parametrize("assignments", [[], CODES], ids=["float", "codes"])
@pytest.mark.parametrize("name", MODELS)
def test_what_is_written_reads_as_the_same_network(name: str, assignments: list[str]) -> None:
    model = read_model(data_path("models", f"{name}.tflite"))
    engine, xml, weights = converted(model, assignments)
    again = OPENVINO.quantize(model_from_bytes(xml, weights, name).main, parse_settings(OPENVINO.settings))
    graph = engine.graph
    x = samples(model.main.tensors[model.main.inputs[0]], 4)
    given = x if assignments else x.astype(np.float32)
    ours = engine.run([given])[graph.outputs[0]]
    read = Engine(again, "openvino").run([given if assignments else channels_first(given)])[again.outputs[0]]
    assert np.array_equal(ours, read)


@pytest.mark.parametrize("bias", [None, 0.0, 1.0, -0.3])
def test_products_in_a_row_whose_biases_are_one_number(bias: float | None) -> None:
    """In one thread the plug-in makes one kernel of them, which returns other numbers where a bias is one number."""
    rng, b, width = np.random.default_rng(8), GraphBuilder("row"), 16
    y = b.input("x", (1, width), DType.FLOAT32)
    for number, units in enumerate((8, 7, 5)):
        operands = [y, b.constant(f"w{number}", rng.normal(size=(units, width)).astype(np.float32))]
        operands += [] if bias is None else [b.constant(f"b{number}", np.full(units, bias, np.float32))]
        y, width = b.add("fully_connected", operands, (1, units), DType.FLOAT32, keep_num_dims=False), units
    given = rng.normal(size=(16, 1, 16)).astype(np.float32)
    engine, xml, weights = converted(Model([calibrate(b.build([y]), [given])], source="row.tflite"))
    ours = engine.run([given])[engine.graph.outputs[0]]
    theirs = Runtime(xml, weights, threads=1).run_exactly([given])
    assert np.abs(ours - theirs).max() <= 1e-5 * np.ptp(theirs)


def test_keyword_spotting() -> None:
    model = read_model(data_path("models", "kws_ref_model.tflite"))
    engine, xml, weights = converted(model)
    x, labels = clips()
    ours = engine.run([x])[engine.graph.outputs[0]].reshape(1000, -1)
    theirs = Runtime(xml, weights).run_exactly([channels_first(x)]).reshape(1000, -1)
    # TFLite's reference kernels have 901 right; allowed are 0.3 points.
    assert abs(right(theirs, labels) - 901) <= 3
    assert abs(right(ours, labels) - 901) <= 3
    assert (ours.argmax(axis=1) == theirs.argmax(axis=1)).sum() >= 995

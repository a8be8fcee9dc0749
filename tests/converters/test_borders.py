"""What every target takes: borders of any type, fake quantization, and chains of shapes in front of RESHAPE."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tflq
from tests.support.data import data_files, data_path
from tflq.converters.calibration import ranges_from_quantization
from tflq.converters.settings import parse_settings
from tflq.converters.targets import find_target, target_names
from tflq.converters.tflite import model_to_bytes
from tflq.errors import UnsupportedError
from tflq.graph import Affine, Array, DType, GraphBuilder, Model
from tflq.oracle import Oracle
from tflq.parallel.executions import Execution, for_target, real_values

FOLDER = ("cases", "float_io")
QUANTIZED = ("default", "int8_io", "uint8_io", "uint8_in_float_out", "qat_default", "qat_fake_quant_float")
SHAPED = [p for p in data_files("cases", "keras", pattern="*.int8.tflite") if "flatten" in p.stem or "cnn" in p.stem]
WORDS_OF_SHAPES = ("shape '", "strided_slice", "'PACK", "pack '", "no range", "internal error")


def execution(name: str, target: str) -> Execution:
    found = find_target(target)
    model = tflq.calibrate(data_path(*FOLDER, f"{name}.tflite"))
    return for_target(model.main, found, parse_settings(found.settings))


def outputs(side: Execution, real: Array) -> Array:
    """Return the real numbers that the output stands for."""
    graph = side.graph
    tensor = graph.tensors[graph.inputs[0]]
    found = find_target(side.name)
    encoded = found.encode(real, tensor) if tensor.dtype.is_integer else real.astype(tensor.dtype.storage)
    (t,) = graph.outputs
    return real_values(side.engine.run([encoded])[t], graph.tensors[t])


@pytest.mark.parametrize("name", QUANTIZED)
@pytest.mark.parametrize("target", target_names())
def test_every_border_is_taken_without_calibration(target: str, name: str) -> None:
    side = execution(name, target)
    real = np.load(data_path(*FOLDER, "x.npy")).astype(np.float32)
    shape = side.graph.tensors[side.graph.inputs[0]].shape
    found = outputs(side, real.reshape(-1, *shape))
    assert np.isfinite(found).all()
    if name in ("default", "uint8_io", "uint8_in_float_out"):
        assert np.array_equal(found, outputs(execution("int8_io", target), real.reshape(-1, *shape)))


@pytest.mark.parametrize("target", [t for t in target_names() if t not in ("onnx", "tflm")])
def test_a_tensor_without_a_range_is_refused(target: str) -> None:
    with pytest.raises(UnsupportedError, match="no range"):
        execution("float", target)


@pytest.mark.parametrize("operator", ["gelu", "tanh", "leaky_relu"])
def test_a_function_in_front_of_a_real_output_has_the_range_of_what_it_makes(operator: str, oracle: Oracle) -> None:
    b = GraphBuilder()
    x = b.input("x", (1, 256), DType.INT8, Affine.per_tensor(np.float32(0.03), 20))
    real = b.add("dequantize", [x], (1, 256), DType.FLOAT32)
    attributes = {"alpha": 0.2} if operator == "leaky_relu" else {}
    graph = b.build([b.add(operator, [real], (1, 256), DType.FLOAT32, **attributes)])
    codes = np.arange(-128, 128, dtype=np.int8).reshape(1, 1, 256)
    theirs = oracle.run(model_to_bytes(Model([graph])), [codes]).tensors[graph.outputs[0]]
    found = ranges_from_quantization(graph).tensors[graph.outputs[0]].range
    assert found is not None
    assert np.allclose([found.minimum[0], found.maximum[0]], [theirs.min(), theirs.max()], rtol=1e-6, atol=0)


@pytest.mark.parametrize("target", target_names())
@pytest.mark.parametrize("path", SHAPED or [None], ids=[p.stem for p in SHAPED] or ["no data"])
def test_no_target_sees_a_chain_of_shapes(path: Path | None, target: str) -> None:
    model, found = tflq.calibrate(path or data_path("cases", "keras")), find_target(target)
    refused = ""
    try:
        for_target(model.main, found, parse_settings(found.settings))
    except UnsupportedError as error:
        refused = str(error)
    assert not any(words in refused for words in WORDS_OF_SHAPES)

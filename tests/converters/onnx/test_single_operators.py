"""Random single operators of the conformance table, written as ONNX, in onnxruntime; opsets, layouts, open batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from tests.support.data import data_files, data_path
from tests.support.exchange import cells, judged, wrongly_refused
from tests.support.lstm import Lstm, lstm_graph
from tests.support.onnx_run import run_onnx, stated_values, wrongly_stated
from tflq.converters.calibration import calibrate
from tflq.converters.onnx import ONNX, OnnxOptions, model_bytes, supported_operators, translate
from tflq.converters.settings import parse_settings
from tflq.converters.settled import settled_model
from tflq.converters.tflite import read_model
from tflq.errors import UnsupportedError
from tflq.graph import Affine, Array, Blockwise, DType, Graph, GraphBuilder, Model, Tensor
from tflq.interpreter import Engine
from tflq.sampling import RandomSamples

PLAIN = ("float32", "int32", "bool")
REFUSED = {
    **dict.fromkeys(("add", "sub"), "the model takes float32"),
    **dict.fromkeys(("cast", "topk_v2"), r"tensor 'y\d' is (complex64|u?int16|uint32), which cannot be written"),
    **dict.fromkeys(("resize_bilinear", "resize_nearest_neighbor"), "'x1' is computed at run time"),
    "non_max_suppression_v4": "an overlap of 0",
    "non_max_suppression_v5": "soft suppression|an overlap of 0",
    "scatter_nd": "indices may repeat",
    "segment_sum": "segments of int32 .* float32 can be written",
    "strided_slice": "without elements",
    "unidirectional_sequence_lstm": "an LSTM with (layer normalization|a projection|clipped cells), which",
    "unidirectional_sequence_rnn": "activation (none|relu6|relu_n1_to_1) of a recurrent layer",
}
"""What a random operator may be refused for: docs/targets/onnx.md lists it."""


@pytest.mark.parametrize("entry", cells(supported_operators(), PLAIN), ids=lambda e: str(e.cell))
def test_float_and_plain_operators(entry, monkeypatch: pytest.MonkeyPatch) -> None:
    """The values that onnxruntime computes, and the shapes and types that onnx infers."""

    def emitted(graph: Graph, model: Model, inputs: Sequence[Array]) -> list[Array]:
        with stated_values(monkeypatch) as stated:
            (data,) = ONNX.emit(graph, model).values()
        assert wrongly_stated(data, stated) == []
        return run_onnx(data, inputs)

    settings = parse_settings(ONNX.settings, ["opset=16"] if entry.cell.operator == "scatter_nd" else [])
    found = list(judged(entry, ONNX, lambda g: ONNX.quantize(g, settings), emitted, 8, 1))
    assert not [f for f in found if f.is_wrong]
    assert wrongly_refused(found, REFUSED) == []


MODELS = data_files("corpus", "single_op_float")


@pytest.mark.parametrize("options", [["opset=13"], ["opset=18", "layout=nhwc"], ["opset=21", "batch=dynamic"]])
@pytest.mark.parametrize("path", MODELS[::7] or [None], ids=[p.stem for p in MODELS[::7]] or ["no data"])
def test_opsets_layouts_and_batches(path, options: list[str]) -> None:
    model = settled_model(read_model(path or data_path("corpus", "single_op_float")))
    graph = ONNX.quantize(model.main, parse_settings(ONNX.settings, options))
    inputs = RandomSamples(model.main, 2, seed=3).take(0, 2)
    ours = Engine(graph, ONNX.arithmetic).run(inputs)
    (data,) = ONNX.emit(graph, model).values()
    theirs = run_onnx(data, inputs, in_layout="layout=nhwc" not in options)
    for t, other in zip(graph.outputs, theirs, strict=True):
        assert np.allclose(ours[t], other, rtol=1e-5, atol=1e-5 * float(np.abs(ours[t]).max()))


@pytest.mark.parametrize("path", MODELS[::3] or [None], ids=[p.stem for p in MODELS[::3]] or ["no data"])
def test_an_open_batch_of_one_operator_is_many_samples(path) -> None:
    model = settled_model(read_model(path or data_path("corpus", "single_op_float")))
    inputs = RandomSamples(model.main, 3, seed=3).take(0, 3)
    settings = parse_settings(ONNX.settings, ["batch=dynamic", "opset=18"])
    refused = ONNX.check(model.main, settings)
    if refused:
        assert all("batch=dynamic" in line for line in refused)
        return
    graph = ONNX.quantize(model.main, settings)
    (data,) = ONNX.emit(graph, model).values()
    ours = Engine(graph, ONNX.arithmetic).run(inputs)
    many = run_onnx(data, [x.reshape(1, -1, *x.shape[2:]) for x in inputs])
    for t, other in zip(graph.outputs, many, strict=True):
        wanted = ours[t].reshape(other.shape)
        assert np.allclose(wanted, other, rtol=1e-5, atol=1e-5 * float(np.abs(wanted).max()))


@pytest.mark.parametrize("operator", ["resize_bilinear", "resize_nearest_neighbor"])
def test_images_of_an_open_batch_are_resized(operator: str) -> None:
    b = GraphBuilder("resized")
    x = b.input("x", (1, 4, 3, 2), DType.FLOAT32)
    size = b.constant("size", np.array([6, 7], np.int32))
    graph = b.build([b.add(operator, [x, size], (1, 6, 7, 2), DType.FLOAT32, half_pixel_centers=True)])
    written = ONNX.quantize(graph, parse_settings(ONNX.settings, ["batch=dynamic"]))
    (data,) = ONNX.emit(written, Model([graph])).values()
    given = np.random.default_rng(3).normal(size=(3, 1, 4, 3, 2)).astype(np.float32)
    ours = Engine(written, ONNX.arithmetic).run([given])[written.outputs[0]]
    (many,) = run_onnx(data, [given.reshape(1, 3, 4, 3, 2)])
    assert np.allclose(many.reshape(ours.shape), ours, rtol=1e-5, atol=1e-5)


def test_a_constant_of_the_batch_is_no_open_batch() -> None:
    b = GraphBuilder("ends")
    x = b.input("x", (2, 3), DType.FLOAT32)
    given = [x, *(b.constant(f"c{i}", np.array(v, np.int32)) for i, v in enumerate(([1, 0], [1, 3])))]
    graph = b.build([b.add("slice", given, (1, 3), DType.FLOAT32)])
    with pytest.raises(UnsupportedError, match="batch=dynamic: "):
        ONNX.quantize(graph, parse_settings(ONNX.settings, ["batch=dynamic"]))


@pytest.mark.parametrize("shape", [(2, 5), (1, 3, 2, 5)])
def test_rows_are_normalized(shape: tuple[int, ...]) -> None:
    """The operator that target tpu-mlir recognizes: (x - m) / sqrt(v + epsilon) * gamma + beta."""
    b, draw = GraphBuilder("rows"), np.random.default_rng(4)
    gamma, beta, x = (draw.normal(size=s).astype(np.float32) for s in (5, 5, (3, *shape)))
    given = [b.input("x", shape, DType.FLOAT32), b.constant("gamma", gamma), b.constant("beta", beta)]
    graph = b.build([b.add("layer_normalization", given, shape, DType.FLOAT32, epsilon=0.5)])
    (found,) = run_onnx(model_bytes(translate(graph, OnnxOptions(opset=17))), [x])
    wide = x.astype(np.float64)
    centered = wide - wide.mean(axis=-1, keepdims=True)
    wanted = centered / np.sqrt((centered**2).mean(axis=-1, keepdims=True) + 0.5) * gamma + beta
    assert np.allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_reals_become_codes_as_quantize_linear_has_them_but_for_ties() -> None:
    step = Affine.per_tensor(np.float32(0.5), 3)
    tensor = Tensor("x", (7,), DType.INT8, step)
    real = np.array([-1000.0, -0.76, -0.25, 0.2, 0.25, 0.74, 1000.0], np.float32)
    assert ONNX.encode(real, tensor).tolist() == [-128, 1, 2, 3, 4, 4, 127]


def test_volumes_without_padding() -> None:
    b, draw = GraphBuilder("volumes"), np.random.default_rng(6)
    weights = b.constant("w", draw.normal(size=(2, 3, 2, 2, 4)).astype(np.float32))
    given = [b.input("x", (1, 5, 6, 4, 2), DType.FLOAT32), weights, b.constant("b", np.arange(4, dtype=np.float32))]
    window = {"padding": "valid", "stride_d": 2, "stride_h": 1, "stride_w": 1}
    graph = b.build([b.add("conv_3d", given, (1, 2, 4, 3, 4), DType.FLOAT32, **window)])
    x = draw.normal(size=(2, 1, 5, 6, 4, 2)).astype(np.float32)
    (found,) = run_onnx(model_bytes(translate(graph)), [x])
    assert np.allclose(found, Engine(graph, "float").run([x])[graph.outputs[0]], rtol=1e-5, atol=1e-5)


def test_the_number_of_places_is_open() -> None:
    onnx = pytest.importorskip("onnx", reason="onnx is not installed: it comes with tflq[onnx]")
    b = GraphBuilder("places")
    graph = b.build([b.add("where", [b.input("x", (2, 5), DType.BOOL)], (1, 2), DType.INT64)])
    (data,) = ONNX.emit(ONNX.quantize(graph, parse_settings(ONNX.settings)), Model([graph])).values()
    (output,) = onnx.load_from_string(data).graph.output
    assert [bool(axis.dim_param) for axis in output.type.tensor_type.shape.dim] == [True, False]
    x = np.random.default_rng(1).random((1, 2, 5)) < 0.5
    assert np.array_equal(run_onnx(data, [x])[0][0], np.argwhere(x[0]))


def test_an_open_batch_is_many_samples() -> None:
    model = settled_model(read_model(data_path("models", "kws_ref_model.tflite")))
    codes = np.random.default_rng(4).integers(-128, 128, (3, *model.main.tensors[model.main.inputs[0]].shape), np.int8)
    found = []
    for options in (["form=qdq"], ["form=qdq", "batch=dynamic"]):
        (data,) = ONNX.emit(ONNX.quantize(model.main, parse_settings(ONNX.settings, options)), model).values()
        found.append(data)
    one = run_onnx(found[0], [codes])[0]
    many = run_onnx(found[1], [codes.reshape(1, 3, *codes.shape[2:])])[0]
    assert np.array_equal(one.reshape(3, -1), many.reshape(3, -1))


def small_network() -> Graph:
    b = GraphBuilder("small")
    draw = np.random.default_rng(5)
    x = b.input("x", (1, 6, 5, 3), DType.FLOAT32)
    w = b.constant("w", draw.normal(size=(4, 3, 3, 3)).astype(np.float32))
    y = b.add("conv_2d", [x, w, b.constant("b", draw.normal(size=4).astype(np.float32))], (1, 6, 5, 4), DType.FLOAT32,
              padding="same", stride_h=1, stride_w=1, fused_activation_function="relu")  # fmt: skip
    return b.build([b.add("maximum", [y, y], (1, 6, 5, 4), DType.FLOAT32)])


@pytest.mark.parametrize(
    ("options", "kind", "share"), [([], np.int8, 0.01), (["type=int16x8", "opset=21"], np.int16, 0.25)]
)
def test_a_float_model_becomes_integers_in_one_step(options: list[str], kind: type, share: float) -> None:
    """One step at most; of 16 bits more often, because TFLite's multiplier has 15 bits there."""
    graph = small_network()
    x = np.random.default_rng(6).normal(size=(8, 1, 6, 5, 3)).astype(np.float32)
    ranged = calibrate(graph, [x])
    quantized = ONNX.quantize(ranged, parse_settings(ONNX.settings, ["form=qdq", *options]))
    (data,) = ONNX.emit(quantized, Model([graph])).values()
    (theirs,) = run_onnx(data, [x])
    ours = Engine(quantized, ONNX.arithmetic).run([x])[quantized.outputs[0]]
    steps = {t.quantization.scale[0] for t in quantized.tensors if t.dtype.storage == kind and not t.is_constant}
    assert np.abs(ours - theirs).max() <= 1.01 * max(steps)
    assert np.mean(ours != theirs) < share


@pytest.mark.parametrize(
    "how",
    [
        Lstm(),
        Lstm(cifg=True),
        Lstm(peephole=True, cifg=True),
        Lstm(peephole=True, batch=2),
        Lstm(time_major=True, batch=3),
    ],
    ids=str,
)
@pytest.mark.parametrize("options", [["opset=13"], ["opset=21"]])
def test_recurrent_layers_begin_with_zeros(how: Lstm, options: list[str]) -> None:
    graph = lstm_graph("unidirectional_sequence_lstm", how, "float")
    x = np.random.default_rng(3).normal(size=(4, *graph.tensors[graph.inputs[0]].shape)).astype(np.float32)
    written = ONNX.quantize(graph, parse_settings(ONNX.settings, options))
    (data,) = ONNX.emit(written, Model([graph])).values()
    ours = Engine(written, ONNX.arithmetic, state="independent").run([x])[written.outputs[0]]
    assert np.allclose(run_onnx(data, [x])[0], ours, rtol=1e-5, atol=1e-5)


def test_a_mixed_file_keeps_its_integers_and_its_real_numbers() -> None:
    b, step = GraphBuilder("mixed"), Affine.per_tensor(np.float32(0.1))
    x = b.input("x", (1, 8), DType.INT8, step)
    real = b.add("elu", [b.add("dequantize", [x], (1, 8), DType.FLOAT32)], (1, 8), DType.FLOAT32)
    graph = b.build([b.add("quantize", [real], (1, 8), DType.INT8, step)])
    written = ONNX.quantize(graph, parse_settings(ONNX.settings, ["form=qdq"]))
    codes = np.random.default_rng(2).integers(-128, 128, (20, 1, 8), np.int8)
    (data,) = ONNX.emit(written, Model([graph])).values()
    ours = Engine(written, ONNX.arithmetic).run([codes])[written.outputs[0]]
    assert np.abs(run_onnx(data, [codes])[0].astype(int) - ours).max() <= 1


def test_weights_of_four_bits() -> None:
    b = GraphBuilder("narrow")
    draw = np.random.default_rng(7)
    step = Affine.per_tensor(np.float32(0.1))
    x = b.input("x", (1, 8), DType.INT8, step)
    w = b.constant("w", draw.integers(-8, 8, (5, 8)).astype(np.int8), Affine.per_tensor(np.float32(0.02)), DType.INT4)
    graph = b.build([b.add("fully_connected", [x, w], (1, 5), DType.INT8, Affine.per_tensor(np.float32(0.2)))])
    quantized = ONNX.quantize(graph, parse_settings(ONNX.settings, ["form=qdq", "opset=21"]))
    codes = draw.integers(-128, 128, (20, 1, 8), np.int8)
    (data,) = ONNX.emit(quantized, Model([graph])).values()
    ours = Engine(replace(graph), "tflite").run([codes])[graph.outputs[0]]
    assert np.abs(run_onnx(data, [codes])[0].astype(int) - ours).max() <= 1
    assert set(types_of(data)) >= {"INT4"}


def types_of(data: bytes) -> list[str]:
    onnx = pytest.importorskip("onnx", reason="onnx is not installed: it comes with tflq[onnx]")
    model = onnx.load_from_string(data)
    return [onnx.TensorProto.DataType.Name(value.data_type) for value in model.graph.initializer]


@pytest.mark.parametrize(("dtype", "block"), [(DType.INT4, 16), (DType.INT8, 32), (DType.INT4, 0), (DType.INT8, 0)])
def test_weights_that_stay_integers_in_a_float_network(dtype: DType, block: int) -> None:
    b, draw = GraphBuilder("narrow"), np.random.default_rng(9)
    x = b.input("x", (1, 64), DType.FLOAT32)
    codes = draw.integers(dtype.minimum, dtype.maximum + 1, (5, 64)).astype(np.int8)
    scales = draw.uniform(0.01, 0.1, (5, 64 // block if block else 1)).astype(np.float16)
    rule = Affine(scales.reshape(-1).astype(np.float32), np.zeros(5, np.int64), 0)
    kind = Blockwise(b.constant("scales", scales), -1, block) if block else rule
    y = b.add("fully_connected", [x, b.constant("w", codes, kind, dtype)], (1, 5), DType.FLOAT32)
    written = ONNX.quantize(b.build([y]), parse_settings(ONNX.settings, ["form=weights", "opset=21"]))
    (data,) = ONNX.emit(written, Model([written])).values()
    given = draw.normal(size=(8, 1, 64)).astype(np.float32)
    ours = Engine(written, ONNX.arithmetic).run([given])[written.outputs[0]]
    assert np.allclose(run_onnx(data, [given])[0], ours, rtol=1e-5, atol=1e-5)
    assert dtype.value.upper() in types_of(data)
    if block or dtype is DType.INT4:
        with pytest.raises(UnsupportedError, match="from opset 21 on: set opset=21"):
            ONNX.quantize(b.build([y]), parse_settings(ONNX.settings, ["form=weights", "opset=20"]))


@pytest.mark.parametrize("name", ["kws_ref_model", "pretrainedResnet_quant"])
def test_a_quantized_network_in_float_with_its_own_weights(name: str) -> None:
    """The numbers of form=float but for the order of sums, in less than half of the bytes."""
    model = settled_model(read_model(data_path("models", f"{name}.tflite")))
    files = []
    for form in ("float", "weights"):
        settings = parse_settings(ONNX.settings, [f"form={form}"])
        files += ONNX.emit(ONNX.quantize(model.main, settings), model).values()
    x = np.random.default_rng(3).normal(size=(2, *model.main.tensors[model.main.inputs[0]].shape)).astype(np.float32)
    floats, theirs = (run_onnx(data, [x])[0] for data in files)
    assert np.abs(floats - theirs).max() <= 1e-5 * np.abs(floats).max()
    assert len(files[1]) < len(files[0]) / 2

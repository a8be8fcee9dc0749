"""TFLite models for Zhouyi: accuracy on keywords, the emitted files, and refusals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support.data import data_path
from tflq.converters.aipu import AIPU, graph_of, network_of
from tflq.converters.aipu.options import options_of
from tflq.converters.aipu.translate import translate
from tflq.converters.settings import parse_settings
from tflq.converters.tflite import read_model
from tflq.errors import OptionError, UnsupportedError
from tflq.graph import DType, Graph, Model, Range
from tflq.graph.builder import GraphBuilder
from tflq.interpreter import Engine, lower
from tflq.interpreter.kernels.aipu.scales import reciprocal
from tflq.quoting import file_name
from tflq.schemas.aipu import Edge, Layer, Network, Value, read_network, write_network


def _model() -> Graph:
    """A float model: convolution with RELU6, softmax over its channels; ranges stand on every tensor."""
    rng = np.random.default_rng(4)
    builder = GraphBuilder()
    x = builder.input("x", (1, 5, 6, 3), DType.FLOAT32)
    weights = builder.constant("w", rng.normal(size=(4, 3, 3, 3)).astype(np.float32))
    window: dict[str, Any] = {"padding": "same", "stride_h": 1, "stride_w": 2, "fused_activation_function": "relu6"}
    y = builder.add("conv_2d", (x, weights), (1, 5, 3, 4), DType.FLOAT32, **window)
    out = builder.add("softmax", (y,), (1, 5, 3, 4), DType.FLOAT32, beta=1.0)
    graph = builder.build((out,))
    for t, (low, high) in {x: (-2.0, 3.0), y: (0.0, 6.0), out: (0.0, 1.0)}.items():
        found = Range(np.array([low], np.float32), np.array([high], np.float32))
        graph.tensors[t] = replace(graph.tensors[t], range=found)
    return graph


@pytest.mark.parametrize("activations", ["symmetric", "asymmetric"])
@pytest.mark.parametrize("weights", ["per_tensor", "per_channel"])
def test_emitted_files_can_be_read(activations: str, weights: str) -> None:
    settings = parse_settings(AIPU.settings, [f"activations={activations}", f"weights={weights}"])
    graph = AIPU.quantize(_model(), settings)
    files = AIPU.emit(graph, Model([graph], source="a b.tflite"))
    name = file_name("a b")
    network = read_network(files[f"{name}_o.txt"].decode(), files[f"{name}_o.bin"])
    assert network.is_quantized
    assert [layer.type for layer in network.layers] == ["Input", "Convolution", "Softmax"]
    assert network.layers[1].tops[0].dtype == "uint8"
    assert network.layers[1].entries["with_activation"] == "RELU6"


@pytest.mark.parametrize("bits", [8, 16])
def test_close_to_the_float_model(bits: int) -> None:
    graph = _model()
    assert AIPU.check(graph, parse_settings(AIPU.settings)) == ()
    settings = parse_settings(AIPU.settings, [f"activation_bits={bits}", f"weight_bits={bits}", "lut_items_in_bits=10"])
    quantized = lower(AIPU.quantize(graph, settings), "aipu")
    real = np.random.default_rng(5).uniform(-2, 3, (20, 1, 5, 6, 3)).astype(np.float32)
    codes = Engine(quantized).run([AIPU.encode(real, quantized.tensors[quantized.inputs[0]])])
    expected = Engine(lower(graph, "float")).run([real])[graph.outputs[0]]
    tensor = quantized.tensors[quantized.outputs[0]]
    found = (codes[quantized.outputs[0]].astype(np.float64) - tensor.affine.zero_point[0]) * tensor.affine.scale[0]
    assert np.abs(found - expected).max() < (0.1 if bits == 8 else 0.02)


PAIRS = ("add", "sub", "mul", "maximum", "minimum")
SINGLES = (
    "abs",
    "ceil",
    "cos",
    "elu",
    "floor",
    "hard_swish",
    "logistic",
    "neg",
    "relu",
    "relu6",
    "round",
    "sin",
    "tanh",
)


@pytest.mark.parametrize("activations", ["symmetric", "asymmetric"])
@pytest.mark.parametrize("operator", [*PAIRS, *SINGLES, "square", "exp"])
def test_close_to_the_float_operator(operator: str, activations: str) -> None:
    """One operator between -3 and 3; a quantized value of the output and what one of the input changes are allowed."""
    count = 2 if operator in PAIRS else 1
    builder = GraphBuilder()
    inputs = [builder.input(f"x{i}", (1, 200), DType.FLOAT32) for i in range(count)]
    graph = builder.build((builder.add(operator, inputs, (1, 200), DType.FLOAT32),))
    real = [np.random.default_rng(i).uniform(-3, 3, (5, 1, 200)).astype(np.float32) for i in range(count)]
    expected = Engine(lower(graph)).run(real)[graph.outputs[0]]
    for t, values in zip((*graph.inputs, *graph.outputs), (*real, expected), strict=True):
        found = Range(np.array([values.min()], np.float32), np.array([values.max()], np.float32))
        graph.tensors[t] = replace(graph.tensors[t], range=found)
    assert AIPU.check(graph, parse_settings(AIPU.settings)) == ()
    quantized = lower(AIPU.quantize(graph, parse_settings(AIPU.settings, [f"activations={activations}"])), "aipu")
    codes = [AIPU.encode(x, quantized.tensors[t]) for x, t in zip(real, quantized.inputs, strict=True)]
    tensor = quantized.tensors[quantized.outputs[0]]
    result = Engine(quantized).run(codes)[quantized.outputs[0]]
    y = (result.astype(np.float64) - tensor.affine.zero_point[0]) * tensor.affine.scale[0]
    error = np.abs(y - expected)
    if operator in ("ceil", "floor", "round"):
        assert (error < 0.02).mean() > 0.97  # steps move by up to a quantized value of the input
    else:
        steepest = {"mul": 3.0, "square": 6.0, "exp": 21.0}.get(operator, 1.2)
        assert error.max() < 1.5 * tensor.affine.scale[0] + count * steepest * 6 / 255 + 0.004 * np.abs(expected).max()


def test_constant_operands_are_layers() -> None:
    """A vector is a Constant beside Mul; one number that is not whole becomes a BatchNorm, without a Constant."""
    builder = GraphBuilder()
    x = builder.input("x", (1, 4), DType.FLOAT32)
    vector = builder.constant("vector", np.array([0.5, 2, -1, 3], np.float32))
    number = builder.constant("number", np.float32(0.3))
    y = builder.add("mul", (x, vector), (1, 4), DType.FLOAT32)
    w = builder.add("abs", (y,), (1, 4), DType.FLOAT32)
    z = builder.add("mul", (w, number), (1, 4), DType.FLOAT32)
    graph = builder.build((z,))
    for t in (x, y, w, z):
        graph.tensors[t] = replace(graph.tensors[t], range=Range(np.float32([-3]), np.float32([3])))
    assert AIPU.check(graph, parse_settings(AIPU.settings)) == ()
    quantized = AIPU.quantize(graph, parse_settings(AIPU.settings))
    assert [node.operator for node in quantized.nodes] == ["constant", "mul", "abs", "batch_norm"]
    weights = quantized.tensors[quantized.nodes[3].inputs[1]]
    assert weights.dtype is DType.INT8
    assert weights.shape == (4,)


def test_fusions_do_not_mind_the_order_of_operands() -> None:
    """BatchNorm and CLIP with constants in front; a Mul that the graph also gives out stays one."""
    builder = GraphBuilder()
    x = builder.input("x", (1, 2, 3), DType.FLOAT32)
    weights = builder.constant("weights", np.arange(3, dtype=np.float32).reshape(1, 1, 3))
    biases = builder.constant("biases", np.ones(3, np.float32))
    one, two = (builder.constant(f"limit{i}", np.float32(i)) for i in (1, 2))
    product = builder.add("mul", (weights, x), (1, 2, 3), DType.FLOAT32)
    total = builder.add("add", (product, biases), (1, 2, 3), DType.FLOAT32)
    low = builder.add("maximum", (one, total), (1, 2, 3), DType.FLOAT32)
    high = builder.add("minimum", (two, low), (1, 2, 3), DType.FLOAT32)
    for outputs, expected in [
        ((high,), ["batch_norm", "activation"]),
        ((high, product), ["constant", "mul", "constant", "add", "activation"]),
    ]:
        layers = translate(builder.build(outputs), "m")
        assert [node.operator for node in layers.nodes] == expected
    clip = layers.nodes[-1].attributes
    assert (clip.real("clip_min"), clip.real("clip_max")) == (1.0, 2.0)


@pytest.mark.filterwarnings("error")
def test_padding_with_the_lowest_number_takes_the_lowest_code() -> None:
    """As models write it in front of a maximum pool."""
    builder = GraphBuilder()
    x = builder.input("x", (1, 4), DType.FLOAT32)
    pads = builder.constant("pads", np.array([[0, 0], [1, 0]], np.int32))
    lowest = builder.constant("lowest", np.finfo(np.float32).min)
    graph = builder.build((builder.add("padv2", (x, pads, lowest), (1, 5), DType.FLOAT32),))
    graph.tensors[x] = replace(graph.tensors[x], range=Range(np.float32([-3]), np.float32([3])))
    quantized = lower(AIPU.quantize(graph, parse_settings(AIPU.settings)), "aipu")
    (codes,) = Engine(quantized).run([np.zeros((1, 1, 4), np.int8)]).values()
    np.testing.assert_array_equal(codes[0, 0], [-128, 0, 0, 0, 0])


def test_keywords() -> None:
    model = read_model(data_path("models", "kws_ref_model.tflite"))
    graph = AIPU.quantize(model.main, parse_settings(AIPU.settings))
    assert [node.operator for node in graph.nodes[-4:]] == ["pooling", "reshape", "fully_connected", "softmax"]


def test_unknown_operators_are_listed_at_once() -> None:
    builder = GraphBuilder()
    x = builder.input("x", (1, 4), DType.FLOAT32)
    graph = builder.build(
        (builder.add("floor_mod", (builder.add("atan2", (x, x), (1, 4), DType.FLOAT32),), (1, 4), DType.FLOAT32),)
    )
    problems = AIPU.check(graph, parse_settings(AIPU.settings))
    assert [line.partition(":")[0][:10] for line in problems] == ["operator 0", "operator 1"]
    with pytest.raises(UnsupportedError, match=r"atan2.*floor_mod"):
        AIPU.quantize(graph, parse_settings(AIPU.settings))


def test_missing_ranges_are_listed_at_once() -> None:
    graph = _model()
    bare = replace(graph, tensors=[replace(t, range=None) for t in graph.tensors])
    with pytest.raises(UnsupportedError, match=r"3 tensors have no range: 'x_0', '\w+', '\w+'; calibrate"):
        AIPU.quantize(bare, parse_settings(AIPU.settings))


def test_long_softmax_is_refused() -> None:
    builder = GraphBuilder()
    x = builder.input("x", (1, 4097), DType.FLOAT32)
    graph = builder.build((builder.add("softmax", (x,), (1, 4097), DType.FLOAT32, beta=1.0),))
    (line,) = AIPU.check(graph, parse_settings(AIPU.settings))
    assert "softmax over 4097 terms; allowed are 4096" in line


def test_settings_of_one_layer() -> None:
    settings = parse_settings(AIPU.settings, layers=["conv_2d:activation_bits=16"])
    graph = AIPU.quantize(_model(), settings)
    types = {node.operator: graph.tensors[node.outputs[0]].dtype for node in graph.nodes}
    assert types == {"convolution": DType.UINT16, "softmax": DType.UINT8}
    with pytest.raises(OptionError, match="matches no operator"):
        AIPU.quantize(_model(), parse_settings(AIPU.settings, layers=["mul:activation_bits=16"]))


def test_unknown_layers_of_an_ir_are_listed_at_once() -> None:
    edges = tuple(Edge(name, (1, 2), "float32") for name in ("x_0", "a_0", "b_0"))
    layers = (
        Layer("x", "Input", (), edges[:1]),
        Layer("a", "Warp", edges[:1], edges[1:2]),
        Layer("b", "Bend", edges[1:2], edges[2:]),
    )
    header: dict[str, Value] = {"model_name": "m", "input_tensors": ("x_0",), "output_tensors": ("b_0",)}
    with pytest.raises(UnsupportedError, match=r"Warp \(layer 1\); Bend \(layer 2\)"):
        graph_of(Network(header, layers))


def test_emit_needs_a_graph_of_the_target() -> None:
    with pytest.raises(UnsupportedError, match="quantize it for aipu first"):
        AIPU.emit(_model(), Model([_model()]))


def test_what_a_sigmoid_reads_may_be_cut() -> None:
    """-9..3 of 8 bits: s = 127.5 / 9, cut at 6 127.5 / 6."""
    builder = GraphBuilder()
    x = builder.input("x", (1, 4), DType.FLOAT32)
    y = builder.add("logistic", (x,), (1, 4), DType.FLOAT32)
    graph = builder.build((y,))
    graph.tensors[x] = replace(graph.tensors[x], range=Range(np.float32([-9]), np.float32([3])))
    for setting, largest in (("false", 9), ("true", 6)):
        quantized = AIPU.quantize(graph, parse_settings(AIPU.settings, [f"cut_inputs={setting}"]))
        assert reciprocal(quantized.tensors[quantized.inputs[0]].affine)[0] == np.float32(127.5 / largest)


@pytest.mark.parametrize(
    ("bits", "kind"), [(3, "aligned_int4"), (4, "aligned_int4"), (8, "int8"), (12, "aligned_int12")]
)
def test_few_bits_have_types_of_their_own(bits: int, kind: str) -> None:
    """Written, and read back with the same values and the same limits."""
    builder = GraphBuilder()
    x = builder.input("x", (1, 4), DType.FLOAT32)
    weights = builder.constant("w", np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4))
    y = builder.add("fully_connected", (x, weights), (1, 3), DType.FLOAT32)
    graph = builder.build((y,))
    for t in (x, y):
        graph.tensors[t] = replace(graph.tensors[t], range=Range(np.float32([-3]), np.float32([3])))
    quantized = AIPU.quantize(graph, parse_settings(AIPU.settings, [f"weight_bits={bits}"]))
    network = network_of(quantized)
    assert network.layers[-1].constants["weights"].dtype == kind
    assert write_network(network_of(graph_of(network))) == write_network(network)


def test_the_target_decides_what_biases_keep_and_how_softmax_works() -> None:
    settings = [parse_settings(AIPU.settings, [f"min_compatible_zhouyi_target={name}"]) for name in ("Z3", "X2", "X3")]
    found = [options_of(dict(one.values)) for one in settings]
    assert [one.bias_effective_bits for one in found] == [0, 32, 32]
    assert [one.softmax for one in found] == ["auto", "auto", "lut"]


def test_blocks_along_one_axis_come_back() -> None:
    """SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND of three axes, as a dilated Conv1D has them: values only move."""
    builder = GraphBuilder()
    x = builder.input("x", (1, 6, 2), DType.FLOAT32)
    block = builder.constant("block", np.array([4], np.int32))
    pads = builder.constant("pads", np.array([[1, 1]], np.int32))
    apart = builder.add("space_to_batch_nd", (x, block, pads), (4, 2, 2), DType.FLOAT32)
    back = builder.add("batch_to_space_nd", (apart, block, pads), (1, 6, 2), DType.FLOAT32)
    graph = builder.build((apart, back))
    graph.tensors[x] = replace(graph.tensors[x], range=Range(np.float32([-3]), np.float32([3])))
    quantized = lower(AIPU.quantize(graph, parse_settings(AIPU.settings)), "aipu")
    given = np.arange(12, dtype=np.int8).reshape(1, 1, 6, 2)
    split, whole = Engine(quantized).run([given]).values()
    padded = np.pad(given.reshape(6, 2), [(1, 1), (0, 0)]).reshape(2, 4, 2)
    np.testing.assert_array_equal(split.reshape(4, 2, 2), padded.transpose(1, 0, 2))
    np.testing.assert_array_equal(whole, given)


def test_a_function_without_a_range_has_that_of_its_input() -> None:
    """ELU behind the last quantized operator of a file: exp(-2) - 1 to 3."""
    builder = GraphBuilder()
    x = builder.input("x", (1, 4), DType.FLOAT32)
    graph = builder.build((builder.add("elu", (x,), (1, 4), DType.FLOAT32),))
    graph.tensors[x] = replace(graph.tensors[x], range=Range(np.float32([-2]), np.float32([3])))
    quantized = AIPU.quantize(graph, parse_settings(AIPU.settings, ["activations=asymmetric"]))
    width = 3 - (np.exp(-2) - 1)
    assert reciprocal(quantized.tensors[quantized.outputs[0]].affine)[0] == pytest.approx(255 / width, rel=1e-6)


def test_only_the_variance_is_one_layer() -> None:
    """Mean, squared difference and mean, of which the first is read by nothing else; RNE of the sum by M and N."""
    builder = GraphBuilder()
    x = builder.input("x", (1, 6, 4), DType.FLOAT32)
    axes = builder.constant("axes", np.array([1], np.int32))
    mean = builder.add("mean", (x, axes), (1, 1, 4), DType.FLOAT32, keep_dims=True)
    apart = builder.add("squared_difference", (x, mean), (1, 6, 4), DType.FLOAT32)
    variance = builder.add("mean", (apart, axes), (1, 1, 4), DType.FLOAT32, keep_dims=True)
    graph = builder.build((variance,))
    for t, largest in ((x, 3), (mean, 3), (apart, 9), (variance, 4)):
        graph.tensors[t] = replace(graph.tensors[t], range=Range(np.float32([-largest]), np.float32([largest])))
    quantized = lower(AIPU.quantize(graph, parse_settings(AIPU.settings)), "aipu")
    assert [node.attributes.get("method") for node in quantized.nodes] == ["VARIANCE"]
    codes = np.random.default_rng(3).integers(-60, 60, (5, 1, 6, 4)).astype(np.int8)
    (found,) = Engine(quantized).run([codes]).values()
    real = (codes / (127.5 / 3)).var(axis=2, keepdims=True)
    np.testing.assert_allclose(found / (255 / 4), real, atol=0.03)

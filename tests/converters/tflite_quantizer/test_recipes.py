"""Recipes by the names of ai-edge-quantizer: TFLite runs each written file, and layers and borders override them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.converters.tflite_quantizer.recipe_helpers import needs_package, network, samples, weight_types, written
from tflq.converters.calibration import StatisticsOptions, calibrate
from tflq.converters.settings import parse_settings
from tflq.converters.tflite import model_from_bytes
from tflq.converters.tflite_quantizer import TFLITE
from tflq.converters.tflite_quantizer.recipes.rules import NAMED as RECIPES
from tflq.errors import OptionError, UnsupportedError
from tflq.graph import Array, DType, Graph, GraphBuilder, Model
from tflq.interpreter import Engine
from tflq.oracle import Oracle

pytestmark = needs_package


@pytest.mark.parametrize("recipe", [name for name in RECIPES if "wi2" not in name and "wi4b" not in name])
def test_tflite_runs_what_a_recipe_writes(recipe: str, oracle: Oracle) -> None:
    _same_in_tflite(oracle, f"recipe={recipe}")


@pytest.mark.parametrize("recipe", ["dynamic_wi2c_afp32", "dynamic_wi2c_hr_afp32"])
def test_tflite_runs_products_of_two_bits(recipe: str, oracle: Oracle) -> None:
    _same_in_tflite(oracle, f"recipe={recipe}", layers=("conv_2d:type=float",))


def _same_in_tflite(oracle: Oracle, *settings: str, layers: tuple[str, ...] = ()) -> None:
    content, graph = written(*settings, layers=layers)
    source = graph.tensors[graph.inputs[0]]
    x = samples()
    if source.dtype is not DType.FLOAT32:
        x = TFLITE.encode(x, source)
    ours = Engine(graph, "tflite").run([x])[graph.outputs[0]]
    theirs = oracle.run(content, [x]).tensors[graph.outputs[0]]
    assert np.array_equal(ours, theirs)


@pytest.mark.parametrize("size", [32, 64, 128, 256])
def test_tflite_runs_blocks(size: int, optimized_oracle: Oracle) -> None:
    """The optimized kernel, since the reference one has no scales of blocks, fed with its own inputs."""
    content, graph = written(f"recipe=dynamic_wi4b{size}_afp32")
    theirs = optimized_oracle.run(content, [samples()]).tensors
    product = graph.nodes[-1]
    graph.inputs, graph.nodes = (product.inputs[0],), [product]
    ours = Engine(graph, "tflite").run([theirs[product.inputs[0]]])[graph.outputs[0]]
    assert np.array_equal(ours, theirs[graph.outputs[0]])


@pytest.mark.parametrize(
    ("recipe", "types"),
    [
        ("dynamic_wi8_afp32", (DType.INT8, DType.INT8, DType.INT8)),
        ("dynamic_wi4_afp32", (DType.INT4, DType.FLOAT32, DType.INT4)),
        ("weight_only_wi4_afp32", (DType.INT4, DType.FLOAT32, DType.INT4)),
        ("static_wi4_ai8", (DType.INT4, DType.FLOAT32, DType.INT4)),
        ("dynamic_legacy_wi8_afp32", (DType.FLOAT32, DType.FLOAT32, DType.INT8)),
        ("float16", (DType.FLOAT16, DType.FLOAT16, DType.FLOAT16)),
        ("dynamic_wi4b32_afp32", (DType.FLOAT32, DType.FLOAT32, DType.INT4)),
        ("static_wi8_ai16", (DType.INT8, DType.INT8, DType.INT8)),
    ],
)
def test_types_of_weights(recipe: str, types: tuple[DType, ...]) -> None:
    _, graph = written(f"recipe={recipe}")
    assert tuple(weight_types(graph).values()) == types


def test_four_bits_are_fourteen_steps() -> None:
    _, graph = written("recipe=dynamic_wi4_afp32")
    weights = graph.tensors[graph.nodes[0].inputs[1]]
    values = network()
    real = values.tensors[values.nodes[0].inputs[1]].data
    assert real is not None
    assert weights.data is not None
    largest = np.abs(real.reshape(8, -1)).max(axis=1)
    assert np.array_equal(weights.affine.scale.astype(np.float32), (largest.astype(np.float64) / 7).astype(np.float32))
    assert weights.data.min() >= -7
    assert weights.data.max() <= 7


def test_a_rule_of_a_layer_wins() -> None:
    _, graph = written("recipe=dynamic_wi4_afp32", layers=("fully_connected:weight_bits=8", "conv_2d:type=float"))
    assert weight_types(graph) == {
        "conv_2d": DType.FLOAT32,
        "depthwise_conv_2d": DType.FLOAT32,
        "fully_connected": DType.INT8,
    }


def test_uint8_borders(oracle: Oracle) -> None:
    _, graph = written("recipe=static_wi8_ai8", "inputs=uint8", "outputs=uint8")
    assert [graph.tensors[t].dtype for t in (*graph.inputs, *graph.outputs)] == [DType.UINT8] * 2
    _same_in_tflite(oracle, "recipe=static_wi8_ai8", "inputs=uint8", "outputs=uint8")


def test_float_borders(oracle: Oracle) -> None:
    _, graph = written("recipe=static_wi8_ai8", "inputs=float", "outputs=float")
    assert (graph.nodes[0].operator, graph.nodes[-1].operator) == ("quantize", "dequantize")
    _same_in_tflite(oracle, "recipe=static_wi8_ai8", "inputs=float", "outputs=float")


def test_an_output_keeps_the_type_of_the_recipe_behind_a_layer_of_another() -> None:
    _, graph = written("recipe=dynamic_wi8_afp32", layers=("fully_connected:type=int8",))
    assert [graph.tensors[t].dtype for t in (*graph.inputs, *graph.outputs)] == [DType.FLOAT32] * 2
    assert [node.operator for node in graph.nodes[-3:]] == ["quantize", "fully_connected", "dequantize"]


@pytest.mark.parametrize(
    ("layer", "dtype", "scales"),
    [
        ("type=float16", DType.FLOAT16, 0),
        ("per_channel=false", DType.INT4, 1),
        ("type=int8,weight_bits=8", DType.INT8, 8),
    ],
)
def test_keys_of_a_layer(layer: str, dtype: DType, scales: int) -> None:
    _, graph = written("recipe=dynamic_wi4_afp32", layers=(f"0:{layer}",))
    assert weight_types(graph)["conv_2d"] is dtype
    assert weight_types(graph)["fully_connected"] is DType.INT4
    convolution = next(node for node in graph.nodes if node.operator == "conv_2d")
    weights = graph.tensors[convolution.inputs[1]]
    assert scales == (0 if weights.quantization is None else weights.affine.scale.size)


@pytest.mark.parametrize(
    ("settings", "layers", "message"),
    [
        (("type=hybrid",), (), "type and weight_bits of the whole graph are the recipe's"),
        (("weight_bits=4",), (), "give them to single layers"),
        (("least_weights=8",), (), "least_weights and asymmetric_inputs are not for recipes"),
        ((), ("0:asymmetric_inputs=true",), "least_weights and asymmetric_inputs are not for recipes"),
    ],
)
def test_keys_that_no_rule_expresses(settings: tuple[str, ...], layers: tuple[str, ...], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        written("recipe=dynamic_wi8_afp32", *settings, layers=layers)


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ("static_wi8_ai8", r"no range.*calibrate the model on samples"),
        ("dynamic_wi8_gptq_afp32", r"GPTQ needs samples \(calibration\)"),
    ],
)
def test_what_a_recipe_needs(recipe: str, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        TFLITE.quantize(network(), parse_settings(TFLITE.settings, [f"recipe={recipe}"]))


def dense(weights: Array, bias: Array) -> Graph:
    """Return one fully connected layer on x [1, K]."""
    b = GraphBuilder("dense")
    x = b.input("x", (1, weights.shape[1]), DType.FLOAT32)
    operands = [x, b.constant("w", weights), b.constant("b", bias)]
    return b.build([b.add("fully_connected", operands, (1, len(weights)), DType.FLOAT32,
                          fused_activation_function="none", keep_num_dims=False)])  # fmt: skip


def quantized(graph: Graph, x: Array, recipe: str) -> tuple[bytes, Graph, Graph]:
    calibrated = calibrate(graph, [x], StatisticsOptions(keep_samples=len(x)))
    result = TFLITE.quantize(calibrated, parse_settings(TFLITE.settings, [f"recipe={recipe}"]))
    (content,) = TFLITE.emit(result, Model([graph])).values()
    return content, model_from_bytes(content, "written").main, result


@pytest.mark.parametrize("recipe", ["static_wi8_ai8", "static_wi8_ai16", "static_wi4_ai8"])
def test_scales_grow_for_a_bias_of_more_than_32_bits(recipe: str, oracle: Oracle) -> None:
    weights = np.array([[0, 0], [1, -0.5], [2, 1]], np.float32)
    x = np.random.default_rng(3).normal(size=(9, 1, 2)).astype(np.float32)
    small = quantized(dense(weights, np.array([0, 1, -1], np.float32)), x, recipe)[1]
    content, graph, result = quantized(dense(weights, np.array([5, 1, -1], np.float32)), x, recipe)
    (node,) = graph.nodes
    w, b = (graph.tensors[t] for t in node.inputs[1:])
    assert w.data is not None
    assert b.data is not None
    assert not w.data[0].any()
    assert abs(int(b.data[0]) - 2**30) < 2**10
    assert np.array_equal(w.affine.scale[1:], small.tensors[small.nodes[0].inputs[1]].affine.scale[1:])
    assert np.array_equal(b.data[1:], np.asarray(small.tensors[small.nodes[0].inputs[2]].data)[1:])
    assert "needs more than 32 bits" in result.nodes[0].attributes.text("engine_reason", "")
    codes = TFLITE.encode(x, graph.tensors[graph.inputs[0]])
    ours = Engine(graph, "tflite").run([codes])[graph.outputs[0]]
    assert np.array_equal(ours, oracle.run(content, [codes]).tensors[graph.outputs[0]])


def test_two_layers_share_weights_of_which_one_grows() -> None:
    b = GraphBuilder("twins")
    x = b.input("x", (1, 2), DType.FLOAT32)
    w = b.constant("w", np.array([[0, 0], [1, 2]], np.float32))
    biases = [b.constant(f"b{k}", np.array([k, 1], np.float32)) for k in (0, 7)]
    graph = b.build([
        b.add("fully_connected", [x, w, bias], (1, 2), DType.FLOAT32, fused_activation_function="none",
              keep_num_dims=False)
        for bias in biases
    ])  # fmt: skip
    samples = np.random.default_rng(3).normal(size=(9, 1, 2)).astype(np.float32)
    _, read, _ = quantized(graph, samples, "static_wi8_ai8")
    scales = [read.tensors[node.inputs[1]].affine.scale for node in read.nodes]
    assert scales[0][0] < 1e-9 < scales[1][0]
    assert scales[0][1] == scales[1][1]


def test_moments_of_the_input_lose_less() -> None:
    draw = np.random.default_rng(3)
    mixed = draw.normal(size=(500, 64)) @ draw.normal(size=(64, 64)) * np.exp(draw.normal(size=64))
    x, weights = mixed.astype(np.float32)[:, None], draw.normal(size=(8, 64)).astype(np.float32)
    graph = dense(weights, np.zeros(8, np.float32))
    exact = x[:, 0].astype(np.float64) @ weights.T
    lost = {}
    for name in ("", "gptq_", "oscar_"):
        _, read, _ = quantized(graph, x, f"dynamic_wi4_{name}afp32")
        product = read.nodes[-1]
        w = read.tensors[product.inputs[1]]
        back = np.asarray(w.data) * w.affine.scale.reshape(-1, 1)
        factors = np.ones(64) if len(read.nodes) == 1 else np.asarray(read.tensors[read.nodes[0].inputs[1]].data)
        lost[name] = float(np.square((x[:, 0] * factors) @ back.T - exact).mean())
    assert lost["gptq_"] < lost[""]
    assert lost["oscar_"] < lost[""]


def test_blocks_that_do_not_divide_rows() -> None:
    graph = dense(np.ones((2, 40), np.float32), np.zeros(2, np.float32))
    with pytest.raises(UnsupportedError, match=r"40 .*not divisible by block size 32; leave such layers out by a rule"):
        TFLITE.quantize(graph, parse_settings(TFLITE.settings, ["recipe=dynamic_wi4b32_afp32"]))


def test_constants_that_are_not_finite() -> None:
    graph = dense(np.array([[1, np.nan]], np.float32), np.zeros(1, np.float32))
    with pytest.raises(UnsupportedError, match="constant 'w' holds NaN or infinity"):
        TFLITE.quantize(graph, parse_settings(TFLITE.settings, ["recipe=dynamic_wi8_afp32"]))


def test_tensors_of_one_name() -> None:
    graph = network()
    graph.tensors = [replace(t, name="same") if t.data is None else t for t in graph.tensors]
    result = TFLITE.quantize(graph, parse_settings(TFLITE.settings, ["recipe=dynamic_wi8_afp32"]))
    assert [node.attributes.text("engine", "") for node in result.nodes] == ["hybrid", "hybrid", "float", "hybrid"]

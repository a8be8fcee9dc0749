"""Recipes by the names of ai-edge-quantizer, and weights of 4 bits: TFLite runs what is written."""

from __future__ import annotations

import numpy as np
import pytest

from tflq.analysis.oracle import Oracle
from tflq.converters.calibration import StatisticsOptions, calibrate
from tflq.converters.settings import parse_settings
from tflq.converters.tflite import model_from_bytes
from tflq.converters.tflite_quantiser import TFLITE
from tflq.converters.tflite_quantiser.recipes.files import NAMED as RECIPES
from tflq.graph import Array, DType, Graph, GraphBuilder, Model
from tflq.interpreter import Engine

WINDOW = {"padding": "same", "stride_h": 1, "stride_w": 1, "fused_activation_function": "relu"}


def network() -> Graph:
    """Return a convolution, a depthwise one, and a product."""
    b = GraphBuilder("small")
    draw = np.random.default_rng(9)

    def constant(*shape: int) -> int:
        return b.constant(f"c{draw.integers(1 << 40)}", draw.normal(size=shape).astype(np.float32))

    x = b.input("x", (1, 8, 4, 3), DType.FLOAT32)
    y = b.add("conv_2d", [x, constant(8, 3, 3, 3), constant(8)], (1, 8, 4, 8), DType.FLOAT32, **WINDOW)
    y = b.add("depthwise_conv_2d", [y, constant(1, 3, 3, 8), constant(8)], (1, 8, 4, 8), DType.FLOAT32,
              depth_multiplier=1, **WINDOW)  # fmt: skip
    shape = b.constant("shape", np.array([1, 256], np.int32))
    y = b.add("reshape", [y, shape], (1, 256), DType.FLOAT32)
    return b.build([b.add("fully_connected", [y, constant(7, 256), constant(7)], (1, 7), DType.FLOAT32,
                          fused_activation_function="none", keep_num_dims=False)])  # fmt: skip


def samples() -> Array:
    return np.random.default_rng(2).normal(size=(6, 1, 8, 4, 3)).astype(np.float32)


def written(*settings: str, layers: tuple[str, ...] = ()) -> tuple[bytes, Graph]:
    graph = network()
    calibrated = calibrate(graph, [samples()], StatisticsOptions(keep_samples=6))
    quantised = TFLITE.quantise(calibrated, parse_settings(TFLITE.settings, settings, layers))
    (content,) = TFLITE.emit(quantised, Model([graph])).values()
    return content, model_from_bytes(content, "written").main


def weight_types(graph: Graph) -> dict[str, DType]:
    found = {}
    for node in graph.nodes:
        if node.operator in ("conv_2d", "depthwise_conv_2d", "fully_connected"):
            t = node.inputs[1]
            source = next((n.inputs[0] for n in graph.nodes if t in n.outputs), t)
            found[node.operator] = graph.tensors[source].dtype
    return found


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
def test_tflite_runs_blocks(size: int, optimised_oracle: Oracle) -> None:
    """The optimised kernel, since the reference one has no scales of blocks, fed with its own inputs."""
    content, graph = written(f"recipe=dynamic_wi4b{size}_afp32")
    theirs = optimised_oracle.run(content, [samples()]).tensors
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

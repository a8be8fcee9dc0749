"""What Keras writes around its layers: dilation by blocks, states that start at 0, indices of embeddings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tflq.converters.aipu import AIPU, network_of
from tflq.converters.calibration import StatisticsOptions, calibrate
from tflq.converters.settings import parse_settings
from tflq.graph import Array, DType, Graph, Range
from tflq.graph.builder import GraphBuilder
from tflq.interpreter import Engine, lower
from tflq.schemas.aipu import Network

F32, WHOLE = DType.FLOAT32, DType.INT32


def _ranged(graph: Graph) -> Graph:
    limits = Range(np.array([-2], np.float32), np.array([3], np.float32))
    graph.tensors[:] = [replace(t, range=limits) if t.data is None and t.dtype is F32 else t for t in graph.tensors]
    return graph


def _files(graph: Graph, *settings: str) -> Network:
    return network_of(lower(AIPU.quantize(graph, parse_settings(AIPU.settings, settings)), AIPU.arithmetic))


def _blocks(builder: GraphBuilder, operator: str, x: int, shape: tuple[int, ...], sides: tuple[int, int]) -> int:
    block = builder.constant(f"{operator}/block", np.array([2, 2], np.int32))
    around = builder.constant(f"{operator}/sides", np.array([sides, sides], np.int32))
    return builder.add(operator, (x, block, around), shape, F32)


def test_a_convolution_between_blocks_is_dilated() -> None:
    """Padding of 3 and 2 in front, one column and row cropped behind: what is left is the convolution's own."""
    builder = GraphBuilder()
    x = builder.input("x", (1, 9, 9, 3), F32)
    apart = _blocks(builder, "space_to_batch_nd", x, (4, 7, 7, 3), (3, 2))
    weights = builder.constant("w", np.random.default_rng(1).normal(size=(4, 3, 3, 3)).astype(np.float32))
    keys: dict[str, Any] = {"padding": "valid", "stride_h": 1, "stride_w": 1, "fused_activation_function": "none"}
    y = builder.add("conv_2d", (apart, weights), (4, 5, 5, 4), F32, **keys)
    graph = _ranged(builder.build((_blocks(builder, "batch_to_space_nd", y, (1, 9, 9, 4), (0, 1)),)))
    (_, layer) = _files(graph).layers
    sides = [layer.entries[f"{key}"] for key in ("dilation_x", "pad_left", "pad_right", "pad_top", "pad_bottom")]
    assert (layer.type, sides) == ("Convolution", [2, 3, 1, 3, 1])
    assert layer.tops[0].shape == (1, 9, 9, 4)


def test_what_no_input_changes_is_a_constant() -> None:
    """The state that starts at 0, through FullyConnected: its biases."""
    builder = GraphBuilder()
    x = builder.input("x", (1, 4), F32)
    dims, zero = builder.constant("dims", np.array([1, 3], np.int32)), builder.constant("zero", np.float32(0))
    state = builder.add("fill", (dims, zero), (1, 3), F32)
    bias = np.array([0.5, -1.25, 1.5, 2.25], np.float32)
    weights, biases = builder.constant("w", np.ones((4, 3), np.float32)), builder.constant("b", bias)
    y = builder.add("fully_connected", (state, weights, biases), (1, 4), F32, fused_activation_function="none")
    graph = _ranged(builder.build((builder.add("add", (x, y), (1, 4), F32, fused_activation_function="none"),)))
    assert AIPU.check(graph, parse_settings(AIPU.settings)) == ()
    kinds = {layer.type: layer for layer in _files(graph).layers}
    assert list(kinds) == ["Input", "Constant", "Eltwise"]
    values = np.asarray(kinds["Constant"].constants["weights"].data, np.float64)
    assert np.allclose(values / values.max(), bias / bias.max(), atol=0.01)


def _embedding() -> tuple[Graph, Array]:
    builder = GraphBuilder()
    rows = np.linspace(-2, 3, 50, dtype=np.float32).reshape(10, 5)
    x, table = builder.input("x", (1, 6), WHOLE), builder.constant("rows", rows)
    zero, size = (builder.constant(name, np.int32(value)) for name, value in (("zero", 0), ("size", 10)))
    below = builder.add("less", (x, zero), (1, 6), DType.BOOL)
    around = builder.add("add", (x, size), (1, 6), WHOLE, fused_activation_function="none")
    index = builder.add("select_v2", (below, around, x), (1, 6), WHOLE)
    return builder.build((builder.add("gather", (table, index), (1, 6, 5), F32, axis=0, batch_dims=0),)), rows


def test_indices_are_whole_numbers() -> None:
    """An embedding counts from the end below 0: sums and choices of int32 at scale 1."""
    graph, rows = _embedding()
    indices = np.random.default_rng(2).integers(-10, 10, (8, 1, 6)).astype(np.int32)
    ranged = calibrate(graph, [indices], StatisticsOptions("extrema"))
    quantized = lower(AIPU.quantize(ranged, parse_settings(AIPU.settings)), AIPU.arithmetic)
    (t,) = quantized.outputs
    found = Engine(quantized).run([indices])[t] * quantized.tensors[t].affine.scale[0]
    assert np.abs(found - rows[indices]).max() < 0.03
    (choice,) = (layer for layer in network_of(quantized).layers if layer.type == "Where")
    assert (choice.entries["scale_type"], choice.entries["scale_value"]) == (("uint8", "uint8"), (1, 1))


@pytest.mark.parametrize(("weights", "kind"), [("per_channel", "uint16"), ("per_tensor", "uint8")])
def test_the_multiplier_of_one_channel_is_wide_where_each_has_its_own(weights: str, kind: str) -> None:
    builder = GraphBuilder()
    x = builder.input("x", (1, 4), F32)
    data = builder.constant("w", np.array([[0.5, -1, 0.25, 1]], np.float32))
    y = builder.add("fully_connected", (x, data), (1, 1), F32, fused_activation_function="none")
    assert _files(_ranged(builder.build((y,))), f"weights={weights}").layers[1].entries["scale_type"] == kind

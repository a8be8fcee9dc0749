"""Concat: when quantized values only move, and one scale for all branches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tflq.converters.aipu import AIPU, graph_of, network_of
from tflq.converters.settings import parse_settings
from tflq.graph import Array, DType, Graph, GraphBuilder, Range
from tflq.interpreter import Engine, lower

REAL = [np.random.default_rng(i).uniform(-1, 1, (4, 1, 32)).astype(np.float32) for i in range(2)]


def _graph(first: float, second: float, joined: float, operators: tuple[str, str] = ("tanh", "tanh")) -> Graph:
    """Return tanh of two inputs, side by side; ranges are +-first, +-second and +-joined."""
    builder = GraphBuilder()
    inputs = [builder.input(f"x{i}", (1, 32), DType.FLOAT32) for i in range(2)]
    branches = []
    for x, operator in zip(inputs, operators, strict=True):
        y = builder.add(operator, (x,), (1, 32), DType.FLOAT32)
        shape = builder.constant(f"shape{x}", np.array([1, 32], np.int32))
        branches.append(builder.add("reshape", (y, shape), (1, 32), DType.FLOAT32, new_shape=(1, 32)))
    out = builder.add("concatenation", branches, (1, 64), DType.FLOAT32, axis=1, fused_activation_function="none")
    graph = builder.build((out,))
    places = [*inputs, *(graph.nodes[i].outputs[0] for i in range(len(graph.nodes)))]
    limits = [1.0, 1.0, first, first, second, second, joined]
    for t, limit in zip(places, limits, strict=True):
        found = Range(np.array([-limit], np.float32), np.array([limit], np.float32))
        graph.tensors[t] = replace(graph.tensors[t], range=found)
    return graph


def _quantized(graph: Graph, *settings: str) -> Graph:
    return lower(AIPU.quantize(graph, parse_settings(AIPU.settings, settings)), "aipu")


def _concat(graph: Graph) -> dict[str, object]:
    return dict(next(x for x in network_of(graph).layers if x.type == "Concat").entries)


def _run(graph: Graph) -> Array:
    codes = [AIPU.encode(x, graph.tensors[t]) for x, t in zip(REAL, graph.inputs, strict=True)]
    return Engine(graph).run(codes)[graph.outputs[0]]


@pytest.mark.parametrize(
    ("ranges", "moves"),
    [((0.5, 0.5, 0.9), True), ((0.5, 0.51, 0.52), True), ((0.5, 0.51, 0.53), False), ((0.5, 0.8, 0.8), False)],
)
def test_branches_of_near_scales_are_joined_as_they_are(ranges: tuple[float, float, float], moves: bool) -> None:
    """The same type passes; scales within 1.05 of each other and of the output's need no multiplier."""
    graph = _quantized(_graph(*ranges))
    entries = _concat(graph)
    assert ("scale_value" not in entries) == moves
    if ranges[0] == ranges[1]:
        assert entries["layer_top_scale"] == (float(np.float32(255) / np.float32(2 * ranges[0])),)
    again = graph_of(network_of(graph))
    np.testing.assert_array_equal(_run(again), _run(graph))


@pytest.mark.parametrize("bits", [8, 16])
def test_one_scale_for_all_branches(bits: int) -> None:
    """Branches take the scale of the Concat, through the layers that pass their input's type.

    Quantized values only move.
    """
    graph = _graph(0.3, 0.8, 0.8)
    sets = (f"activation_bits={bits}", "lut_items_in_bits=10")
    apart, unified = _quantized(graph, *sets), _quantized(graph, *sets, "unify_concat=true")
    assert "scale_value" in _concat(apart)
    assert "scale_value" not in _concat(unified)
    scales = [unified.tensors[t].affine.scale[0] for node in unified.nodes for t in node.outputs]
    assert np.allclose(scales, scales[-1], rtol=1e-6)
    expected = np.tanh(np.concatenate(REAL, axis=2))
    real = _run(unified) * unified.tensors[unified.outputs[0]].affine.scale[0]
    assert np.abs(real - expected).max() < (0.02 if bits == 8 else 0.002)


def test_branches_of_other_types_stay() -> None:
    """A signed and an unsigned branch cannot share quantized values."""
    graph = _graph(0.3, 0.8, 0.8, ("tanh", "logistic"))
    plain, asked = _quantized(graph), _quantized(graph, "unify_concat=true")
    assert network_of(asked) == network_of(plain)


def test_codes_are_as_wide_as_the_widest_branch() -> None:
    graph = _graph(0.3, 0.8, 0.8)
    settings = parse_settings(AIPU.settings, layers=["0:activation_bits=16"])
    quantized = AIPU.quantize(graph, settings)
    assert quantized.tensors[quantized.outputs[0]].dtype is DType.INT16


def test_one_asymmetric_scale_for_all_branches() -> None:
    """Their ranges are as wide as the output's, on both sides of 0."""
    unified = _quantized(_graph(0.3, 0.8, 0.8), "activations=asymmetric", "unify_concat=true")
    scales = [float(unified.tensors[t].affine.scale[0]) for node in unified.nodes for t in node.outputs]
    assert np.allclose(scales, 1.6 / 255, rtol=1e-5)

"""Activations of 12 bits: names of their types, limits, and the file read back. The Optimizer takes 8 to 16 bits."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.aipu_layers import Output, float_layer
from tflq.converters.aipu import AIPU, graph_of, network_of
from tflq.converters.settings import parse_settings
from tflq.graph import Array, Graph
from tflq.interpreter import Engine, lower
from tflq.schemas.aipu import write_network

X = np.linspace(-4, 4, 64, dtype=np.float32).reshape(1, 64)


def _quantized(method: str, settings: list[str]) -> Graph:
    graph = float_layer("activation", [X], [Output((64,), (-1.0, 1.0))], method=method)
    return lower(AIPU.quantize(graph, parse_settings(AIPU.settings, settings)), AIPU.arithmetic)


def _run(graph: Graph) -> Array:
    return Engine(graph).run([AIPU.encode(X, graph.tensors[graph.inputs[0]])], list(graph.outputs))[graph.outputs[0]]


@pytest.mark.parametrize(("method", "kind"), [("TANH", "aligned_int12"), ("SIGMOID", "aligned_uint12")])
def test_types_and_the_file_read_back(method: str, kind: str) -> None:
    graph = _quantized(method, ["activation_bits=12", "lut_items_in_bits=10"])
    network = network_of(graph)
    entry, layer = network.layers
    assert (entry.tops[0].dtype, layer.tops[0].dtype, layer.constants["lut"].dtype) == ("aligned_int12", kind, kind)
    assert len(layer.constants["lut"].data) == 1024
    read = graph_of(network)
    assert write_network(network_of(read)) == write_network(network)
    assert np.array_equal(_run(read), _run(graph))


@pytest.mark.parametrize("bits", [8, 12])
def test_a_table_is_read_from_the_lowest_value_of_its_bits(bits: int) -> None:
    graph = _quantized("TANH", [f"activation_bits={bits}", "lut_items_in_bits=10"])
    (x, y), codes = (graph.tensors[t].affine for t in (graph.inputs[0], graph.outputs[0])), _run(graph)
    assert (x.minimum_code, y.maximum_code) == (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    read = AIPU.encode(X, graph.tensors[graph.inputs[0]]) * x.scale[0]
    step = 0 if bits < 12 else 5 * x.scale[0]
    assert np.abs(codes * y.scale[0] - np.tanh(read)).max() <= 0.51 * y.scale[0] + step + (1.0 / (1 << bits))


@pytest.mark.parametrize(("bits", "kind"), [(8, "uint8"), (12, "aligned_uint12"), (16, "uint16")])
def test_the_input_of_moments_has_a_multiplier_of_the_type_of_the_variance(bits: int, kind: str) -> None:
    """As the Optimizer writes it for a layer norm with activations of each width."""
    outputs = [Output((1, 1), (-1.0, 1.0)), Output((1, 1), (0.0, 4.0))]
    graph = float_layer("moments", [X], outputs, axis=(1,), keepdims=True)
    settings = parse_settings(AIPU.settings, [f"activation_bits={bits}"])
    _, layer = network_of(lower(AIPU.quantize(graph, settings), AIPU.arithmetic)).layers
    assert layer.entries["input_scale_type"] == kind
    assert layer.tops[1].dtype == kind

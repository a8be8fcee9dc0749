"""GridSample: quantized values that the Optimizer computes, and the float definition within their resolution."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from tests.support.aipu_layers import Output, float_layer
from tflq.converters.aipu import AIPU, graph_of, network_of
from tflq.converters.settings import parse_settings
from tflq.errors import UnsupportedError
from tflq.graph import Array, Graph, Range
from tflq.graph.attributes import Attribute
from tflq.interpreter import Engine, lower
from tflq.schemas.aipu import write_network


@dataclass(frozen=True)
class Case:
    """A layer, one sample, and its output codes by settings; ranges of image and grid."""

    keys: dict[str, Attribute]
    image: list[float]
    grid: list[float]
    ranges: tuple[tuple[float, float], tuple[float, float]]
    wanted: dict[str, list[int]]


WIDE = "activations=asymmetric,activation_bits=16"
CASES = {
    "bilinear": Case(
        {"method": "BILINEAR", "padding_mode": "ZEROS", "align_corners": False},
        [-0.66, 2.46, 1.06, 0.45, 4.02, 1.66, 2.62, -2.38, -1.29, 1.67, 1.81, -0.11],
        [-0.72, 1.1, 0.37, 0.79, 0.08, -1.1, 0.09, 0.31, -0.99, -0.05, 1.06, -1.05, -1.09, -0.95, 0.44, 0.94],
        ((-2.7940831184387207, 3.4663493633270264), (-1.1239031553268433, 1.1004915237426758)),
        {
            "activations=symmetric": [-15, 39, 19, 75, 59, 2, -5, 22],
            WIDE: [-3684, 10395, 5081, 19455, 15508, 687, -1148, 6027],
        },
    ),
    "nearest": Case(
        {"method": "NEAREST", "padding_mode": "BORDER", "align_corners": True},
        [1.68, 1.45, -0.48, -0.56, -3.92, 2.35, -0.25, -2.87, -2.27, -1.8, 3.39, 1.37],
        [-1.03, 1.16, -0.02, -0.49, -0.96, -1.04, 1.18, 0.69, 1.15, 0.83, -0.17, -0.74, 0.09, -0.63, -0.82, 0.13],
        ((-3.673428773880005, 3.668337106704712), (-1.0753393173217773, 1.0613517761230469)),
        {
            "activations=symmetric": [-79, 82, 58, 48, 48, 50, -17, -128],
            WIDE: [-20248, 20962, 14986, 12220, 12220, 12934, -4282, -32767],
        },
    ),
}
RUNS = [(name, settings) for name, case in CASES.items() for settings in case.wanted]


def _layer(case: Case) -> tuple[Graph, list[Array]]:
    inputs: list[Array] = [
        np.array(case.image, np.float32).reshape(1, 1, 3, 4, 1),
        np.array(case.grid, np.float32).reshape(1, 1, 2, 4, 2),
    ]
    graph = float_layer("grid_sample", inputs, [Output((1, 2, 4, 1))], **case.keys)
    for place, pair in enumerate(case.ranges):
        limits = (np.asarray([limit], np.float32) for limit in pair)
        graph.tensors[place] = replace(graph.tensors[place], range=Range(*limits))
    return graph, inputs


def _quantized(graph: Graph, settings: str) -> Graph:
    return lower(AIPU.quantize(graph, parse_settings(AIPU.settings, settings.split(","))), AIPU.arithmetic)


def _run(graph: Graph, inputs: list[Array]) -> list[int]:
    codes = [AIPU.encode(x, graph.tensors[t]) for x, t in zip(inputs, graph.inputs, strict=True)]
    found: list[int] = Engine(graph).run(codes, list(graph.outputs))[graph.outputs[0]].ravel().tolist()
    return found


@pytest.mark.parametrize(("name", "settings"), RUNS)
def test_values_of_the_optimizer(name: str, settings: str) -> None:
    graph, inputs = _layer(CASES[name])
    lowered = _quantized(graph, settings)
    assert _run(lowered, inputs) == CASES[name].wanted[settings]
    network = network_of(lowered)
    read = graph_of(network)
    assert write_network(network_of(read)) == write_network(network)
    assert _run(read, inputs) == CASES[name].wanted[settings]


@pytest.mark.parametrize("name", CASES)
def test_in_float(name: str) -> None:
    """The layer's own places in float32, beside what 16 bits of the Optimizer stand for."""
    graph, inputs = _layer(CASES[name])
    graph.nodes[0] = replace(graph.nodes[0], arithmetic="aipu_float")
    limited = [np.clip(x, -max(map(abs, r)), max(map(abs, r))) for x, r in zip(inputs, CASES[name].ranges, strict=True)]
    found = Engine(graph).run(limited, list(graph.outputs))[graph.outputs[0]].ravel()
    step = max(map(abs, CASES[name].ranges[0])) / 32767
    allowed = 0.51 * step if name == "nearest" else 20 * step
    assert np.abs(found - np.array(CASES[name].wanted[WIDE]) * step).max() <= allowed


def test_volumes_run_with_wide_grids_only() -> None:
    inputs: list[Array] = [np.ones((1, 1, 3, 4, 5, 1), np.float32), -np.ones((1, 1, 2, 2, 2, 3), np.float32)]
    keys: dict[str, Attribute] = {"method": "BILINEAR", "padding_mode": "BORDER", "align_corners": True}
    graph = float_layer("grid_sample", inputs, [Output((1, 2, 2, 2, 1))], **keys)
    assert len(set(_run(_quantized(graph, WIDE), inputs))) == 1
    with pytest.raises(UnsupportedError, match="a grid of 8 bits must be signed, of images"):
        _quantized(graph, "activations=symmetric")

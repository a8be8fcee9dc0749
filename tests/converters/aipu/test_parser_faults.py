"""Two outputs of one Split that the Compass Parser takes for one: right by default and named, its files on request."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tflq.cli import main
from tflq.converters.aipu import AIPU
from tflq.converters.aipu.emit import float_network_of
from tflq.converters.aipu.translate import translate
from tflq.converters.calibration import StatisticsOptions, calibrate
from tflq.converters.settings import parse_settings
from tflq.converters.tflite import model_to_bytes
from tflq.graph import Array, DType, Graph, GraphBuilder, Model
from tflq.interpreter import Engine, lower

# What the Parser made of each: type and name of the layer, and the Constant's value.
MADE = {
    "mul": ("Square", "y", None),
    "sub": ("Constant", "y", 0.0),
    "div": ("Constant", "y", 1.0),
    "squared_difference": ("Constant", "y_pow", 0.0),
}
RIGHT = ("add", "maximum", "minimum")


def _network(operator: str) -> Graph:
    b = GraphBuilder("m")
    x = b.input("x", (1, 4, 4, 8), DType.FLOAT32)
    halves = [b.tensor(f"half{i}", (1, 4, 4, 4), DType.FLOAT32) for i in range(2)]
    b.node("split", (b.constant("axis", np.int32(3)), x), halves, num_splits=2)
    y = b.tensor("y", (1, 4, 4, 4), DType.FLOAT32)
    keys = {"fused_activation_function": "none"} if operator in ("add", "div", "mul", "sub") else {}
    b.node(operator, halves, (y,), **keys)
    return b.build((b.add("abs", (y,), (1, 4, 4, 4), DType.FLOAT32),))


def _samples() -> Array:
    return np.random.default_rng(2).uniform(0.5, 2, (6, 1, 4, 4, 8)).astype(np.float32)


def _run(operator: str, *settings: str) -> tuple[Graph, Array]:
    """Return the quantized graph and its real results."""
    samples = _samples()
    ranged = calibrate(_network(operator), [samples], StatisticsOptions("extrema"))
    graph = lower(AIPU.quantize(ranged, parse_settings(AIPU.settings, settings)), AIPU.arithmetic)
    codes = AIPU.encode(samples, graph.tensors[graph.inputs[0]])
    (t,) = graph.outputs
    affine = graph.tensors[t].affine
    return graph, (Engine(graph).run([codes])[t].astype(np.float64) - affine.zero_point[0]) * affine.scale[0]


@pytest.mark.parametrize("operator", MADE)
def test_the_parsers_layers_on_request(operator: str) -> None:
    kind, name, value = MADE[operator]
    found = {
        layer.name: layer for layer in float_network_of(translate(_network(operator), "m", faults=True), "m").layers
    }
    assert found[name].type == kind
    if value is not None:
        assert np.array_equal(found[name].constants["weights"].data, np.full((1, 4, 4, 4), value, np.float32))
    plain = {layer.type for layer in float_network_of(translate(_network(operator), "m"), "m").layers}
    assert not plain & {"Square", "Constant"}


@pytest.mark.parametrize("operator", MADE)
def test_the_model_is_computed_and_the_layer_named(operator: str) -> None:
    graph, found = _run(operator)
    expected = np.abs(Engine(lower(_network(operator))).run([_samples()]).popitem()[1])
    if (
        operator != "sub"
    ):  # of inputs of one type the Optimizer forgets the difference's scale (docs/rules/aipu/operators.md)
        assert np.abs(found - expected).max() < 0.1
    assert np.corrcoef(found.reshape(-1), expected.reshape(-1))[0, 1] > 0.99
    ((layer, words),) = AIPU.departures(graph).items()
    assert layer.startswith("y")
    assert "the Parser takes two outputs of a Split for one" in words
    wrong, other = _run(operator, "parser_faults=true")
    assert AIPU.departures(wrong) == {}
    is_constant = np.ptp(other) == 0
    assert is_constant or np.corrcoef(other.reshape(-1), expected.reshape(-1))[0, 1] < 0.9


@pytest.mark.parametrize("operator", RIGHT)
def test_others_read_both_outputs(operator: str) -> None:
    sides = [float_network_of(translate(_network(operator), "m", faults=f), "m") for f in (False, True)]
    assert [layer.bottoms for layer in sides[0].layers] == [layer.bottoms for layer in sides[1].layers]
    assert not any("Split" in words for words in AIPU.departures(_run(operator)[0]).values())


def test_convert_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.tflite").write_bytes(model_to_bytes(Model([_network("mul")])))
    np.save(tmp_path / "x.npy", _samples())
    command = ["convert", str(tmp_path / "m.tflite"), "-t", "aipu", "--calibrate", str(tmp_path / "x.npy")]
    assert main([*command, "-o", str(tmp_path / "a")]) == 0
    shown = "".join(capsys.readouterr())
    assert "the Parser takes two outputs of a Split for one" in " ".join(shown.split())
    assert main([*command, "-s", "parser_faults=true", "-o", str(tmp_path / "b")]) == 0
    assert "two outputs" not in "".join(capsys.readouterr())

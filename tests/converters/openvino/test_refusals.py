"""What cannot be quantized or written: which, why, what to do; one line, status 2, nothing written."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.converters.openvino.networks import asymmetric_weights, image_network, with_ranges
from tests.support.command import tflq
from tflq.converters.openvino import OPENVINO
from tflq.converters.settings import parse_settings
from tflq.converters.tflite import model_to_bytes
from tflq.errors import GraphError, OptionError, UnsupportedError
from tflq.graph import Affine, DType, Graph, GraphBuilder

SETTINGS = parse_settings(OPENVINO.settings)


def infinite_weights(value: float) -> Graph:
    b = GraphBuilder()
    x = b.input("x", (1, 4), DType.FLOAT32)
    w = np.ones((2, 4), np.float32)
    w[1, 2] = value
    y = b.add("fully_connected", [x, b.constant("w", w)], (1, 2), DType.FLOAT32, keep_num_dims=False)
    return with_ranges(b.build([y]))


def product_of_scales(activations: float, weights: float) -> Graph:
    b = GraphBuilder()
    q = Affine.per_tensor(np.float32(activations))
    x = b.input("x", (1, 4), DType.INT8, q)
    w = b.constant("w", np.ones((2, 4), np.int8), Affine.per_tensor(np.float32(weights)))
    return b.build([b.add("fully_connected", [x, w], (1, 2), DType.INT8, q, keep_num_dims=False)])


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_weights_that_are_not_finite(value: float) -> None:
    with pytest.raises(UnsupportedError, match=r"operator 0 .*'w' are -?(inf|nan) at \(1, 2\); weights are finite"):
        OPENVINO.quantize(infinite_weights(value), SETTINGS)


def test_a_range_of_zeros_is_from_0_to_1() -> None:
    graph = OPENVINO.quantize(image_network(0, 0), SETTINGS)
    scales = [float(t.affine.scale[0]) for t in graph.tensors if t.dtype is DType.INT8 and not t.is_constant]
    assert scales
    assert np.allclose(scales, 1 / 255, rtol=1e-6)


def test_inverted_and_infinite_ranges() -> None:
    with pytest.raises(GraphError, match=r"range 1\.0\.\.-1\.0, inverted"):
        OPENVINO.quantize(image_network(1, -1), SETTINGS)
    with pytest.raises(GraphError, match="bounds are finite"):
        OPENVINO.quantize(image_network(-1, np.inf), SETTINGS)


def test_scales_of_zero() -> None:
    with pytest.raises(GraphError, match=r"tensor 'x' has scale 0\.0; scales are positive"):
        OPENVINO.quantize(product_of_scales(0, 1), SETTINGS)
    with pytest.raises(UnsupportedError, match=r"weights 'w' have scale 0\.0 in channel 0"):
        OPENVINO.quantize(product_of_scales(1, 0), SETTINGS)


@pytest.mark.parametrize("has_bias", [False, True])
def test_every_filter_with_wrong_weights_is_listed(has_bias: bool) -> None:
    b, scale = GraphBuilder(), Affine.per_tensor(np.float32(1))
    x = b.input("x", (1, 4), DType.INT8, scale)
    more = [b.constant("b", np.zeros(4, np.int32))] if has_bias else []
    for name, step in (("first", 0), ("second", 1), ("third", np.inf)):
        w = b.constant(name, np.ones((4, 4), np.int8), Affine.per_tensor(np.float32(step)))
        x = b.add("fully_connected", [x, w, *more], (1, 4), DType.INT8, scale, keep_num_dims=False)
    lines = OPENVINO.check(b.build([x]), SETTINGS)
    assert [line.split(" (")[0] for line in lines] == ["operator 0", "operator 2"]
    assert ["'first' have scale 0.0" in lines[0], "'third' have scale inf in channel 0" in lines[1]] == [True, True]


def test_missing_ranges() -> None:
    graph = image_network()
    graph.tensors = [replace(t, range=None) for t in graph.tensors]
    with pytest.raises(UnsupportedError, match=r"of \d+ tensors have no range \(first 'x'\): calibrate"):
        OPENVINO.quantize(graph, SETTINGS)


def test_asymmetric_weights_beyond_int8() -> None:
    with pytest.raises(UnsupportedError, match=r"are asymmetric: .* reach -3\.\.217, beyond int8.*precision=float"):
        OPENVINO.quantize(asymmetric_weights(3), SETTINGS)
    OPENVINO.quantize(asymmetric_weights(3), parse_settings(OPENVINO.settings, ["precision=float"]))


def test_operators_without_a_layer() -> None:
    b = GraphBuilder()
    x = b.input("x", (1, 4), DType.FLOAT32)
    y = b.add("unique", [x], (1, 4), DType.FLOAT32)
    z = b.add("dilate", [y], (1, 4), DType.FLOAT32)
    lines = OPENVINO.check(b.build([z]), SETTINGS)
    assert len(lines) == 2
    assert "operator 0 (unique" in lines[0]
    assert "operator 1 (dilate" in lines[1]


@pytest.mark.parametrize(
    ("slopes", "is_taken"),
    [((1,), True), ((1, 1, 1), True), ((3,), True), ((1, 1, 3), True), ((3, 1, 1), False), ((3, 5, 1), False)],
)
def test_slopes_are_those_of_channels(slopes: tuple[int, ...], is_taken: bool) -> None:
    b = GraphBuilder()
    operands = [b.input("x", (1, 3, 5, 3), DType.FLOAT32), b.constant("slopes", np.ones(slopes, np.float32))]
    graph = with_ranges(b.build([b.add("prelu", operands, (1, 3, 5, 3), DType.FLOAT32)]))
    if is_taken:
        assert list(OPENVINO.check(graph, SETTINGS)) == []
    else:
        with pytest.raises(
            UnsupportedError, match=re.escape(f"slopes of shape {slopes}; PRelu takes one for each of 3")
        ):
            OPENVINO.quantize(graph, SETTINGS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("levels=1", "levels=1: allowed are"),
        ("levels=-3", "levels=-3: allowed are"),
        ("levels=100", "levels=100: allowed are"),
    ],
)
def test_settings_that_no_runtime_takes(text: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        OPENVINO.quantize(image_network(), parse_settings(OPENVINO.settings, [text]))


@pytest.mark.parametrize("text", ["activation_bits=0", "weight_bits=3", "precision=int4", "input=bytes"])
def test_refused_values(text: str) -> None:
    with pytest.raises(OptionError, match="allowed is"):
        parse_settings(OPENVINO.settings, [text])


@pytest.mark.parametrize(
    ("graph", "arguments", "message"),
    [
        (lambda: product_of_scales(0, 1), (), "has scale 0.0"),
        (lambda: product_of_scales(1, 0), (), "tensor 'w' has scale 0.0"),
        (lambda: asymmetric_weights(3), (), "are asymmetric"),
        (lambda: asymmetric_weights(128), ("--set", "levels=1"), "levels=1: allowed are"),
        (lambda: infinite_weights(np.inf), (), "weights 'w' are inf at"),
    ],
)
def test_the_command_writes_nothing(graph: object, arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    assert callable(graph)
    (tmp_path / "model.tflite").write_bytes(model_to_bytes(graph()))
    outcome = tflq("convert", "model.tflite", "--target", "openvino", *arguments, "-o", "out", cwd=tmp_path)
    assert message in outcome.refused()
    assert [p.name for p in tmp_path.iterdir()] == ["model.tflite"]

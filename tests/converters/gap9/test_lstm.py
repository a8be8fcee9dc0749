"""Two LSTM layers of a float model with calibrated ranges, against the vendor's tool."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.support.data import data_path
from tests.support.gap9_golden import quantized
from tests.support.gap9_read_back import read_graph
from tflq.arrays import is_same
from tflq.converters.gap9.passes.choose_engines import NE16, SQ8
from tflq.converters.gap9.passes.constants import cell_maximum
from tflq.converters.passes.rewrite import with_attributes
from tflq.converters.targets import find_target
from tflq.converters.tflite import read_model
from tflq.errors import UnsupportedError
from tflq.graph import Array, Graph, Model, Range
from tflq.interpreter import Engine, lower

SCHEMES = {"ne16": "gap9-ne16", "sq8": "gap9-sq8"}
GATES = "ifco"


def limits(low: float, high: float) -> Range:
    return Range(np.array([low], np.float32), np.array([high], np.float32))


def calibrated(entries: dict[str, Any]) -> Model:
    """The float model with the ranges of the golden file: of tensors, and of the cell states."""
    model = read_model(data_path("golden", "gap9", "lstm.tflite"))
    graph = model.main.copy()
    for entry in entries["nodes"]:
        if entry["op"] not in ("input", "lstm", "linear"):
            continue
        stated = entry["quant"]["out_qs"][0]
        node = next((n for n in graph.nodes if n.name == entry["name"]), None)
        t = node.outputs[0] if node else graph.inputs[0]
        graph.tensors[t] = replace(graph.tensors[t], range=limits(stated["stats_min"][0], stated["stats_max"][0]))
        if node and entry["op"] == "lstm":
            cell = entry["statistics"]["range_cell"]
            state = node.inputs[19]
            graph.tensors[state] = replace(graph.tensors[state], range=limits(cell["min"], cell["max"]))
    for node in graph.nodes:
        if node.operator == "reshape":
            range_ = graph.tensors[node.inputs[0]].range
            graph.tensors[node.outputs[0]] = replace(graph.tensors[node.outputs[0]], range=range_)
    return Model([graph], source=model.source)


@cache
def case(scheme: str) -> tuple[dict[str, Any], dict[str, Array], Graph, Model]:
    folder = data_path("golden", "gap9")
    entries = json.loads((folder / f"lstm.{scheme}.json").read_text(encoding="utf-8"))
    with np.load(folder / f"lstm.{scheme}.npz") as file:
        arrays = {key: file[key] for key in file.files}
    model = calibrated(entries)
    return entries, arrays, lower(quantized(model, SCHEMES[scheme]), "gap9"), model


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_tensor(scheme: str) -> None:
    _, arrays, graph, _ = case(scheme)
    given = graph.tensors[graph.inputs[0]]
    codes = find_target(SCHEMES[scheme]).encode(arrays["input"].reshape(4, *given.shape), given)
    assert np.array_equal(codes.reshape(-1), arrays["tensor/input_1"].reshape(-1))
    values = Engine(graph).run([codes], [t for node in graph.nodes for t in node.outputs])
    compared = [n for n in graph.nodes if f"tensor/{n.name}" in arrays]
    assert len(compared) == 3
    for node in compared:
        assert np.array_equal(values[node.outputs[0]].reshape(-1), arrays[f"tensor/{node.name}"].reshape(-1)), node.name


@pytest.mark.parametrize("scheme", SCHEMES)
def test_integers_of_the_gates(scheme: str) -> None:
    entries, arrays, graph, _ = case(scheme)
    for node in graph.nodes:
        if "LSTM" not in node.name:
            continue
        entry = next(e for e in entries["nodes"] if e["name"] == node.name)
        quant, params = entry["quant"], node.params
        for number, gate in enumerate(GATES):
            part = slice(number * params.units, (number + 1) * params.units)
            for position, key, mul_bias in (
                (1, "i", params.input_mul_bias),
                (5, "r", params.recurrent_mul_bias),
            ):
                assert (mul_bias.multiplier[part] == quant[f"{key}_2_{gate}_q"]["value"]).all()
                assert (mul_bias.shift[part] == quant[f"{key}_2_{gate}_q"]["norm"]).all()
                weights = graph.tensors[node.inputs[position + number]]
                assert np.array_equal(weights.data, arrays[f"const/{key}_2_{gate}_w_{node.name}"])
                expected = np.asarray(quant["in_qs"][position + number]["scale"], weights.affine.scale.dtype)
                assert np.array_equal(weights.affine.scale, expected)
            assert np.array_equal(params.bias[part], arrays[f"const/{gate}_b_{node.name}"])
            assert (params.input_bias[part] == quant["in_qs"][12 + number].get("zp_bias", 0)).all()
        for key, mul_bias in (
            ("cell_in_q", params.cell_in),
            ("cell_out_q", params.cell_out),
            ("state_out_q", params.state_out),
        ):
            assert (mul_bias.multiplier.tolist(), mul_bias.shift.tolist()) == (quant[key]["value"], quant[key]["norm"])


@pytest.mark.parametrize("scheme", SCHEMES)
def test_files_come_back(scheme: str) -> None:
    _, _, graph, model = case(scheme)
    files = find_target(SCHEMES[scheme]).emit(graph, model)
    assert "model.tflite" not in files
    assert "no TFLite types" in json.loads(files["quantization.json"])["artefacts"]["tflite_reason"]
    again = lower(read_graph(files), "gap9")
    assert all(is_same(a.params, b.params) for a, b in zip(graph.nodes, again.nodes, strict=True))


@pytest.mark.parametrize(
    ("position", "words"),
    [(1, "without input gate"), (9, "peephole"), (16, "projection"), (21, "layer normalization")],
)
def test_variants_are_refused(position: int, words: str) -> None:
    model = case("ne16")[3]
    graph = model.main.copy()
    node = graph.nodes[0]
    operand = -1 if position == 1 else node.inputs[1]
    inputs = tuple(operand if p == position else t for p, t in enumerate(node.inputs))
    graph.nodes[0] = replace(node, inputs=inputs)
    with pytest.raises(UnsupportedError, match=words):
        quantized(Model([graph]), "gap9-ne16")


def test_a_cell_needs_a_range() -> None:
    graph = case("ne16")[3].main.copy()
    state = graph.nodes[1].inputs[19]
    graph.tensors[state] = replace(graph.tensors[state], range=None)
    with pytest.raises(UnsupportedError, match=r"the cell state .* has no range"):
        quantized(Model([graph]), "gap9-ne16")


def test_wide_features_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="features of 16 bits"):
        quantized(case("ne16")[3], "gap9-ne16", ["feature_bits=16"])


@pytest.mark.parametrize(
    ("clip", "reach", "ne16", "sq8"),
    [(0.0, 0.5, 1, 0.5), (0.0, 3, 3, 3), (0.0, 90, 64, 64), (70.0, 1, 64, 64), (2.0, 9, 2, 2)],
)
def test_the_largest_cell(clip: float, reach: float, ne16: float, sq8: float) -> None:
    """docs/rules/gap9/operators.md#lstm: cell_clip, else max|cell| (NE16: at least 1), at most 64."""
    source = read_model(data_path("golden", "gap9", "lstm.tflite")).main.copy()
    node = next(n for n in source.nodes if n.operator == "unidirectional_sequence_lstm")
    state = node.inputs[19]
    source.tensors[state] = replace(source.tensors[state], range=limits(-reach, reach / 2))
    for engine, wanted in ((NE16, ne16), (SQ8, sq8)):
        assert cell_maximum(source, with_attributes(node, cell_clip=clip, engine=engine)) == wanted


@pytest.mark.parametrize(("low", "high"), [(0.0, 2.5), (-1.0, 2.5), (-2.5, 1.0)])
def test_the_input_of_a_layer(low: float, high: float) -> None:
    """docs/rules/gap9/operators.md#lstm: uint8 on the file's range, or int8 symmetric."""
    graph = case("ne16")[3].main.copy()
    graph.tensors[graph.inputs[0]] = replace(graph.tensors[graph.inputs[0]], range=limits(low, high))
    for target in SCHEMES.values():
        made = quantized(Model([graph]), target)
        layer = next(node for node in made.nodes if node.operator == "unidirectional_sequence_lstm")
        x = made.tensors[layer.inputs[0]].affine
        if target == "gap9-sq8":
            assert (x.signed, int(x.zero_point[0])) == (True, 0)
            assert float(x.scale[0]) == pytest.approx(max(high / 127, -low / 128))
        else:
            assert (x.signed, int(x.zero_point[0])) == (False, round(-low / (high - low) * 255))
            assert float(x.scale[0]) == pytest.approx((high - low) / 255)


@pytest.mark.parametrize(
    ("features", "weights", "other", "merges"),
    [
        *((1.0, 1.0, 1.0, True), (0.91, 1.0, 1.0, True), (1.09, 1.0, 1.0, True)),
        *((0.89, 1.0, 1.0, False), (1.11, 1.0, 1.0, False)),
        *((1.0, 0.81, 0.81, True), (1.0, 1.19, 1.19, True), (1.0, 0.79, 0.79, False), (1.0, 1.21, 1.21, False)),
        *((1.0, 1.0, 0.79, False), (1.0, 1.0, 1.21, False)),
    ],
)
def test_scales_that_nntool_merges(features: float, weights: float, other: float, merges: bool) -> None:
    """Refused on SQ8 where S_x / S_h is within 10 % of 1, and S_w / S_r of all gates within 20 %."""
    graph = case("sq8")[3].main.copy()
    node = graph.nodes[0]
    for t, reach in ((node.inputs[0], features), (node.outputs[0], 1.0)):
        graph.tensors[t] = replace(graph.tensors[t], range=limits(-reach, reach))
    for gate in range(4):
        ratio = other if gate == 3 else weights
        for t, wanted in ((node.inputs[1 + gate], ratio), (node.inputs[5 + gate], 1.0)):
            data = graph.tensors[t].data
            assert data is not None
            graph.tensors[t] = replace(graph.tensors[t], data=data * np.float32(wanted / np.abs(data).max()))
    if merges:
        with pytest.raises(UnsupportedError, match="so close that GAP9's tool merges them on SQ8"):
            quantized(Model([graph]), "gap9-sq8")
    else:
        quantized(Model([graph]), "gap9-sq8")
    quantized(Model([graph]), "gap9-ne16")

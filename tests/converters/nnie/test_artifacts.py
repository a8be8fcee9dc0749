"""The files beside the Caffe network, and what the graph holds."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.converters.nnie.networks import (
    depthwise_with_multiplier,
    fully_connected,
    global_mean,
    shortcut,
    start,
    uneven_padding,
)
from tests.support.nnie import clipping_grid, from_true_form, package, quantized
from tflq.converters.calibration import ranges_from_quantization
from tflq.converters.nnie import NNIE
from tflq.converters.settings import parse_settings
from tflq.graph import Array, DType, Graph, GraphBuilder, Logarithmic, Model
from tflq.interpreter import Engine, lower
from tflq.interpreter.kernels.nnie.logarithm import SCHEMES, fake_quantize, scheme_of, z_of
from tflq.schemas.nnie import specification

EIGHT = scheme_of(8)


def samples(graph: Graph, count: int = 5) -> list[Array]:
    rng = np.random.default_rng(3)
    return [rng.normal(0, 2, (count, *graph.tensors[t].shape)).astype(np.float32) for t in graph.inputs]


def test_files() -> None:
    graph = uneven_padding()
    files = package(graph, samples(graph))
    assert list(files) == [
        "net.prototxt",
        "net.caffemodel",
        "net.cfg",
        "net_samples.txt",
        "net_clipping.json",
        "README.md",
    ]


def test_cfg_has_known_keys_and_names_the_files() -> None:
    graph = uneven_padding()
    files = package(graph, samples(graph), ["bits=16", "internal_stride=32", "is_simulation=1", "batch_num=8"])
    pairs = dict(line[1:].split("] ", 1) for line in files["net.cfg"].decode().splitlines())
    known = specification()["cfg"]
    assert isinstance(known, dict)
    assert set(pairs) <= set(known)
    assert (pairs["compile_mode"], pairs["internal_stride"], pairs["is_simulation"]) == ("1", "32", "1")
    assert (pairs["image_type"], pairs["norm_type"], pairs["batch_num"]) == ("0", "0", "8")
    for key in ("prototxt_file", "caffemodel_file", "image_list"):
        assert pairs[key].removeprefix("./") in files


def test_samples_read_back_as_c_h_w() -> None:
    graph = uneven_padding()
    data = samples(graph)
    rows = package(graph, data)["net_samples.txt"].decode().splitlines()
    found = np.array([[np.float32(v) for v in row.split(" ")] for row in rows], np.float32)
    assert np.array_equal(found, data[0].transpose(0, 1, 4, 2, 3).reshape(5, -1))


def test_clipping_values_are_on_the_grid() -> None:
    graph = shortcut()
    table = json.loads(package(graph, samples(graph))["net_clipping.json"])
    grid = {float(c): z for z, c in zip(range(-511, 512), clipping_grid(EIGHT), strict=True)}
    assert [entry["operator"] for entry in table["layers"]] == ["conv_2d", "add", "mul", "concatenation"]
    for entry in table["layers"]:
        for group in (entry["activation"], entry.get("weight", entry["activation"])):
            assert grid[group["clipping"]] == group["z"] == z_of(group["maximum"], EIGHT)
            assert np.float32(group["clipping_decimal"]) == np.float32(group["clipping"])


def test_one_z_for_all_inputs_of_a_layer() -> None:
    graph = shortcut()
    made = lower(quantized(graph, samples(graph)), "nnie")
    add = made.nodes[1]
    ranges = [made.tensors[t].range for t in add.inputs]
    largest = max(float(abs(v)) for r in ranges if r for v in (r.minimum[0], r.maximum[0]))
    assert add.attributes.real("activation_maximum") == largest


def test_readme_says_what_only_the_vendors_tools_do() -> None:
    graph = depthwise_with_multiplier()
    text = package(graph, samples(graph))["README.md"].decode()
    for words in ("nnie_mapper net.cfg", ".wk", "gfpq_param_file", "depthwise"):
        assert words in text


def test_without_samples_the_list_is_missing_and_the_readme_says_so() -> None:
    graph = ranges_from_quantization(uneven_padding())
    from dataclasses import replace

    from tflq.converters.calibration.ranges import range_of

    graph.tensors = [replace(t, range=None if t.is_constant else range_of(-1, 1)) for t in graph.tensors]
    files = NNIE.emit(NNIE.quantize(graph, parse_settings(NNIE.settings)), Model([graph], source="net.tflite"))
    assert "net_samples.txt" not in files
    assert "**not written**" in files["README.md"].decode()


@pytest.mark.parametrize("bits", [8, 16])
def test_a_layer_computes_with_what_its_codes_stand_for(bits: int) -> None:
    b, x = start(6)
    graph = b.build([fully_connected(b, x, 6, 4)])
    data = samples(graph, 20)
    made = quantized(graph, data, [f"bits={bits}"])
    found = Engine(made, "nnie").run(data)[made.outputs[0]].reshape(20, 4)
    scheme = scheme_of(bits)
    weights, bias = (graph.tensors[t].data for t in graph.nodes[0].inputs[1:])
    assert weights is not None
    assert bias is not None
    x_codes = fake_quantize(data[0].reshape(20, 6), z_of(np.abs(data[0]).max(), scheme), scheme)
    w_codes = fake_quantize(weights, z_of(np.abs(weights).max(), scheme), scheme)
    total = np.zeros((20, 4), np.float32)
    for k in range(6):
        total = total + x_codes[:, k, None] * w_codes[:, k]
    assert np.array_equal(found, total + bias)


@pytest.mark.parametrize(("operator", "function"), [("add", np.add), ("mul", np.multiply)])
def test_pairs_compute_with_what_the_codes_of_both_stand_for(operator: str, function: np.ufunc) -> None:
    b = GraphBuilder()
    inputs = [b.input(name, (1, 4, 4, 3), DType.FLOAT32) for name in ("a", "b")]
    graph = b.build([b.add(operator, inputs, (1, 4, 4, 3), DType.FLOAT32, fused_activation_function="none")])
    data = samples(graph)
    made = quantized(graph, data)
    z = z_of(max(float(np.abs(x).max()) for x in data), EIGHT)
    expected = function(*(fake_quantize(x, z, EIGHT) for x in data))
    assert np.array_equal(Engine(made, "nnie").run(data)[made.outputs[0]], expected)


def test_the_lowered_graph_holds_the_codes() -> None:
    graph = uneven_padding()
    made = lower(quantized(graph, samples(graph)), "nnie")
    layer = made.nodes[0].params.weights
    sign, codes = from_true_form(layer.stored)
    assert layer.stored.dtype == np.uint8
    assert np.array_equal(sign, layer.sign)
    assert np.array_equal(codes, layer.codes)
    assert isinstance(made.tensors[made.nodes[0].inputs[1]].quantization, Logarithmic)
    sixteen = lower(quantized(graph, samples(graph), ["bits=16"]), "nnie")
    assert sixteen.nodes[0].params.weights.stored is None


def test_the_specification_states_the_schemes_that_run() -> None:
    keys = ("steps_per_octave", "largest_code", "largest_z")
    stated = specification()["schemes"]
    assert isinstance(stated, dict)
    found = {int(bits): tuple(row[key] for key in keys) for bits, row in stated.items() if isinstance(row, dict)}
    assert found == SCHEMES


def test_one_weight_is_a_layer() -> None:
    b, x = start(1)
    floats = b.build([fully_connected(b, x, 1, 1)])
    graph = quantized(floats, samples(floats))
    assert Engine(graph).run(samples(graph))


def test_a_mean_is_one_window_of_stride_1() -> None:
    graph = global_mean()
    text = package(graph, samples(graph))["net.prototxt"].decode()
    assert "kernel_h: 6\n    kernel_w: 4\n    stride_h: 1\n    stride_w: 1\n" in text

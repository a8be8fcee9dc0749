"""Layers in floating point inside the quantized graph: against the float model itself, and the accuracy they give."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from tests.converters.aipu.test_target import _model
from tests.support.aipu_golden import KWS
from tests.support.data import data_path
from tests.support.kws import clips, right
from tests.support.tracked import ROOT
from tflq.cli import main
from tflq.converters.aipu import AIPU, graph_of, network_of
from tflq.converters.settings import parse_settings
from tflq.converters.tflite import read_model
from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Graph, GraphBuilder, Model, Range
from tflq.interpreter import Engine, lower

DIGITS = ROOT / "tflq" / "data" / "digits.tflite"


def _images() -> Array:
    return np.random.default_rng(11).uniform(-2, 3, (6, 1, 5, 6, 3)).astype(np.float32)


def _quantized(graph: Graph, *layers: str) -> Graph:
    return lower(AIPU.quantize(graph, parse_settings(AIPU.settings, layers=layers)), "aipu")


def _reals(codes: Array, graph: Graph, t: int) -> Array:
    affine = graph.tensors[t].affine
    s = np.float32(1 / affine.scale[0])
    reals: Array = ((codes.astype(np.int64) - affine.zero_point[0]).astype(np.float32) / s).astype(np.float32)
    return reals


def _run(graph: Graph, real: Array) -> tuple[Array, dict[str, Array]]:
    """Return the quantized values of the input and of every tensor."""
    codes = AIPU.encode(real, graph.tensors[graph.inputs[0]])
    kept = [t for node in graph.nodes for t in node.outputs]
    found = Engine(graph).run([codes], kept)
    return codes, {graph.tensors[t].name: found[t] for t in kept}


def test_a_whole_network_in_float_is_the_float_network() -> None:
    """Input to quantized values and back, the float network, then quantized values of the output.

    Nothing else rounds.
    """
    network, real = _model(), _images()
    graph = _quantized(network, "*:float=true")
    codes, found = _run(graph, real)
    expected = Engine(lower(network)).run([_reals(codes, graph, graph.inputs[0])])[network.outputs[0]]
    output = graph.tensors[graph.outputs[0]]
    np.testing.assert_array_equal(found[output.name], AIPU.encode(expected, output))


@pytest.mark.parametrize("operator", ["conv_2d", "softmax"])
def test_one_layer_in_float(operator: str) -> None:
    """Its result is that of the float operator on what the quantized values before it stand for.

    Others keep their integers.
    """
    network, real = _model(), _images()
    graph, plain = _quantized(network, f"{operator}:float=true"), _quantized(network)
    (codes, found), (_, usual) = _run(graph, real), _run(plain, real)
    index = next(i for i, node in enumerate(network.nodes) if node.operator == operator)
    layer = next(n for n in plain.nodes if n.operator == {"conv_2d": "convolution"}.get(operator, operator))
    before = codes if index == 0 else usual[plain.tensors[layer.inputs[0]].name]
    alone = replace(network, nodes=[network.nodes[index]], inputs=network.nodes[index].inputs[:1])
    alone.outputs = network.nodes[index].outputs
    reals = Engine(lower(alone)).run([_reals(before, plain, layer.inputs[0])])[alone.outputs[0]]
    output = graph.tensors[layer.outputs[0]]
    np.testing.assert_array_equal(found[output.name], AIPU.encode(reals, output))
    if index == 1:
        assert all(np.array_equal(found[name], codes) for name, codes in usual.items() if name != output.name)


def test_neighbors_in_float_hand_on_their_numbers() -> None:
    """Two layers by 1 / 1000 and by 1000: quantized values of a range of 100 in between would leave nothing."""
    builder = GraphBuilder()
    x = builder.input("x", (1, 8), DType.FLOAT32)
    a = builder.add("exp", (x,), (1, 8), DType.FLOAT32)
    b = builder.add("log", (a,), (1, 8), DType.FLOAT32)
    graph = builder.build((b,))
    for t, limits in ((x, (-4.0, 4.0)), (a, (0.0, 1e6)), (b, (-4.0, 4.0))):
        graph.tensors[t] = replace(graph.tensors[t], range=Range(*(np.array([v], np.float32) for v in limits)))
    both = _quantized(graph, "exp:float=true", "log:float=true")
    real = np.random.default_rng(12).uniform(-4, 4, (3, 1, 8)).astype(np.float32)
    codes, found = _run(both, real)
    np.testing.assert_array_equal(found[both.tensors[both.outputs[0]].name], codes)
    alone = _quantized(graph, "log:float=true")
    _, found = _run(alone, real)
    assert len(np.unique(found[alone.tensors[alone.outputs[0]].name])) == 1


def test_keywords_in_float_have_the_float_accuracy() -> None:
    """Float gives 807 of 900; an input of 8 bits and an output of 8 bits, with ties, may move a few."""
    layers = json.loads(data_path("golden", "aipu", KWS, "sym_pt", "layers.json").read_text(encoding="utf-8"))
    logged = {out["name"]: out for layer in layers for out in layer["outs"]}
    model = read_model(data_path("models", "kws_ref_model_float32.tflite")).main
    for t, tensor in enumerate(model.tensors):
        out = logged.get(f"{tensor.name}_0")
        if out is not None:
            low, high = (np.asarray(out[key], np.float32).reshape(1) for key in ("fmin", "fmax"))
            model.tensors[t] = replace(tensor, range=Range(low, high))
    real, labels = clips()
    graph = _quantized(model, "*:float=true")
    codes = AIPU.encode(real[100:], graph.tensors[graph.inputs[0]])
    count = right(np.asarray(Engine(graph).run([codes])[graph.outputs[0]]), labels[100:])
    assert abs(count - 807) <= 3


@pytest.mark.parametrize(
    ("settings", "operators"),
    [
        ((), ("exp", "square", "log")),
        (("log:float=true",), ("exp", "square", "dequantize", "log", "quantize")),
        (("square:float=true",), ("exp", "dequantize", "square", "quantize", "log")),
        (("exp:float=true", "square:float=true"), ("dequantize", "exp", "quantize", "square", "quantize", "log")),
        (("*:float=true",), ("dequantize", "exp", "quantize", "square", "quantize", "log", "quantize")),
    ],
)
def test_operators_of_layers_in_float(settings: tuple[str, ...], operators: tuple[str, ...]) -> None:
    """Numbers go in front of the first, quantized values behind each, for whoever reads them."""
    builder = GraphBuilder()
    x = builder.input("x", (1, 8), DType.FLOAT32)
    a = builder.add("exp", (x,), (1, 8), DType.FLOAT32)
    b = builder.add("square", (a,), (1, 8), DType.FLOAT32)
    graph = builder.build((builder.add("log", (b,), (1, 8), DType.FLOAT32),))
    limits = Range(np.array([0], np.float32), np.array([4], np.float32))
    graph.tensors[:] = [replace(t, range=limits) for t in graph.tensors]
    assert tuple(node.operator for node in _quantized(graph, *settings).nodes) == operators


def test_files_cannot_hold_float_layers() -> None:
    graph = AIPU.quantize(_model(), parse_settings(AIPU.settings, layers=["softmax:float=true"]))
    with pytest.raises(UnsupportedError, match=r"runs in floating point, which is for measuring.*float=true away"):
        AIPU.emit(graph, Model([graph]))


def test_scopes_of_numbers_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Operators 0 to 5 in float: the comparison shows less noise behind them."""
    tensors = []
    for options in ((), ("-l", "0-5:float=true")):
        assert main(["compare", f"{DIGITS}@aipu", "-n", "8", "--json", *options]) == 1
        tensors.append({t["name"]: t for t in json.loads(capsys.readouterr().out)["tensors"]})
    plain, floating = tensors
    name = list(plain)[4]
    assert floating[name]["sqnr_db"] > plain[name]["sqnr_db"] + 3


def _function(operator: str) -> Graph:
    """One function of eight numbers, quantized."""
    builder = GraphBuilder()
    x = builder.input("x", (1, 8), DType.FLOAT32)
    graph = builder.build((builder.add(operator, (x,), (1, 8), DType.FLOAT32),))
    for t, limits in ((x, (-4.0, 4.0)), (graph.outputs[0], (-16.0, 1.0))):
        graph.tensors[t] = replace(graph.tensors[t], range=Range(*(np.array([v], np.float32) for v in limits)))
    return _quantized(graph)


def _codes(graph: Graph) -> Array:
    real = np.random.default_rng(11).uniform(-4, 4, (20, 1, 8)).astype(np.float32)
    return _run(graph, real)[1][graph.tensors[graph.outputs[0]].name]


@pytest.mark.parametrize("operator", ["log_softmax", "softmax", "tanh", "logistic"])
def test_functions_are_read_back_as_they_were_written(operator: str) -> None:
    quantized = _function(operator)
    assert np.array_equal(_codes(lower(graph_of(network_of(quantized)), "aipu")), _codes(quantized))


def test_factors_of_log_softmax_are_those_of_the_file() -> None:
    quantized = _function("log_softmax")
    network = network_of(quantized)
    layer = network.layers[-1]
    first, second = layer.entries["quantize_scale"]
    changed = replace(layer, entries={**layer.entries, "quantize_scale": (first, second / 2)})
    read = graph_of(replace(network, layers=(*network.layers[:-1], changed)))
    assert not np.array_equal(_codes(lower(read, "aipu")), _codes(quantized))

"""Quantized IR read back: the vendor's integers run, give the vendor's tensors, and return to the vendor's file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.converters.aipu.test_golden import CASES
from tests.support.aipu_golden import KWS, Golden, golden, read_ir
from tests.support.data import data_path
from tflq.converters.aipu import AIPU, graph_of, network_of
from tflq.converters.settings import parse_settings
from tflq.errors import FormatError, OptionError, TflqError, UnsupportedError
from tflq.graph import Model
from tflq.interpreter import Engine
from tflq.schemas.aipu import Constant, Entry, Layer, Network, read_network


def _read(case: str, mode: str) -> Golden:
    """Return a golden case whose graph is that of the vendor's quantized file."""
    wanted = golden(case, mode).wanted
    graph = graph_of(wanted)
    return replace(golden(case, mode), found=network_of(graph), graph=graph)


@pytest.mark.parametrize(("case", "mode"), CASES)
def test_every_tensor_of_the_vendors_file(case: str, mode: str) -> None:
    read = _read(case, mode)
    found = read.run()
    assert found.keys() == read.tensors.keys()
    for name, codes in read.tensors.items():
        np.testing.assert_array_equal(np.broadcast_to(found[name], codes.shape), codes, err_msg=name)


@pytest.mark.parametrize(("case", "mode"), CASES)
def test_every_field_returns(case: str, mode: str) -> None:
    read = _read(case, mode)
    assert list(read.found.header.items()) == list(read.wanted.header.items())
    for ours, theirs in zip(read.found.layers, read.wanted.layers, strict=True):
        assert (ours.name, ours.type) == (theirs.name, theirs.type)
        assert (ours.bottoms, ours.tops) == (theirs.bottoms, theirs.tops)
        assert list(ours.entries.items()) == list(theirs.entries.items())


def test_a_returned_file_is_the_vendors_byte_for_byte() -> None:
    folder = data_path("golden", "aipu", KWS, "asym_pc")
    network = read_ir(folder, "kws_ref_model_float32_o")
    graph = graph_of(network)
    files = AIPU.emit(graph, Model([graph], source="kws_ref_model_float32.txt"))
    for name, content in files.items():
        assert content == (Path(folder) / name).read_bytes()


def _changed(network: Network, name: str, **changes: Entry) -> Network:
    layers = [replace(x, entries={**x.entries, **changes}) if x.name == name else x for x in network.layers]
    return replace(network, layers=tuple(layers))


def _relu() -> tuple[Network, Layer]:
    network = read_ir(data_path("golden", "aipu", "ops", "RELU", "sym"), "RELU_o")
    return network, next(x for x in network.layers if x.type == "Activation")


def test_the_files_own_multiplier_runs() -> None:
    """Another M than the scales give: the file wins."""
    network, layer = _relu()
    graph = graph_of(_changed(network, layer.name, scale_value=3, shift_value=2))
    x = np.arange(-128, 128).astype(np.int8)
    shape = graph.tensors[graph.inputs[0]].shape
    codes = np.resize(x, (1, *shape))
    found = Engine(graph).run([codes])[graph.outputs[0]]
    wanted = np.clip(np.rint(np.maximum(codes.astype(np.float64), 0) * 3 / 4), 0, 255)
    np.testing.assert_array_equal(found, wanted)


def test_the_files_own_table_runs() -> None:
    network = read_ir(data_path("golden", "aipu", "ops", "TANH", "sym"), "TANH_o")
    layer = next(x for x in network.layers if x.type == "Activation")
    table = np.arange(-128, 128).astype(np.int8)[::-1].copy()
    graph = graph_of(_changed(network, layer.name, lut=Constant(table, "int8")))
    codes = np.resize(np.arange(-128, 128).astype(np.int8), (1, *graph.tensors[graph.inputs[0]].shape))
    found = Engine(graph).run([codes])[graph.outputs[0]]
    np.testing.assert_array_equal(found, -1 - codes)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"unquantifiable": True}, UnsupportedError, "kept in float"),
        ({"layer_top_scale": ()}, FormatError, "need one entry for each of its 1 tops"),
        ({"layer_top_scale": (-1.0,)}, FormatError, "scale -1.0.*positive scale"),
        ({"layer_top_scale": ("a",)}, FormatError, "scale a.*positive scale"),
        ({"layer_top_zp": (0.5,)}, FormatError, "zero point 0.5.*whole zero point"),
        ({"layer_top_range": ((5, 5),)}, FormatError, "a range of two whole numbers that rises"),
        ({"layer_top_range": (5,)}, FormatError, "a range of two whole numbers that rises"),
        ({"scale_value": ((1, 2), (3, 4))}, UnsupportedError, r"scale_value=.*: allowed are whole numbers"),
        (
            {"scale_value": (1, 2), "shift_value": (1, 2, 3)},
            UnsupportedError,
            "2 multipliers, 3 shifts; allowed is one",
        ),
        ({"scale_value": "many"}, UnsupportedError, "scale_value=many: allowed are whole numbers"),
        ({"shift_value": 199}, UnsupportedError, "a shift of 199; allowed is"),
        ({"negative_slope_shift": 12}, UnsupportedError, "the file states negative_slope_shift=12"),
        ({"lut": Constant(np.zeros(3, np.int8), "int8")}, UnsupportedError, "the file states lut=3 numbers.* has none"),
    ],
)
def test_integers_that_cannot_run_are_refused(changes: dict[str, Entry], error: type[TflqError], message: str) -> None:
    network, layer = _relu()
    with pytest.raises(error, match=message):
        graph_of(_changed(network, layer.name, **changes))


def test_keys_of_another_form_name_the_layer() -> None:
    network = read_ir(data_path("golden", "aipu", "layers", "ROI_ALIGN_AVG", "sym"), "ROI_ALIGN_AVG_o")
    layer = next(x for x in network.layers if x.type == "RoiAlign")
    with pytest.raises(FormatError, match=r"operator 0 \(roi_align '.*'\): its keys do not fit it"):
        graph_of(_changed(network, layer.name, pooled_shape=(2,)))


def test_ragged_lists_are_refused() -> None:
    network, layer = _relu()
    entries: dict[str, Entry] = {"pads": ((0, 1), (2,)), **layer.entries}
    layers = [replace(x, entries=entries) if x.name == layer.name else x for x in network.layers]
    with pytest.raises(FormatError, match="lists within a list must have one length"):
        graph_of(replace(network, layers=tuple(layers)))


@pytest.mark.parametrize(("key", "value"), [("weights_zp", float("inf")), ("biases_scale", "wide")])
def test_scales_of_constants_are_numbers(key: str, value: Entry) -> None:
    network = read_ir(data_path("golden", "aipu", KWS, "sym_pt"), "kws_ref_model_float32_o")
    layer = next(x for x in network.layers if x.type == "FullyConnected")
    with pytest.raises(FormatError, match=rf"{key}={value}: allowed is a"):
        graph_of(_changed(network, layer.name, **{key: value}))


def test_a_table_of_odd_length_is_refused() -> None:
    network = read_ir(data_path("golden", "aipu", "ops", "TANH", "sym"), "TANH_o")
    layer = next(x for x in network.layers if x.type == "Activation")
    with pytest.raises(UnsupportedError, match="a table of 100 entries; allowed is a power of two up to 256"):
        graph_of(_changed(network, layer.name, lut=Constant(np.zeros(100, np.int8), "int8")))


def test_several_problems_are_listed_at_once() -> None:
    network = read_ir(data_path("golden", "aipu", KWS, "sym_pt"), "kws_ref_model_float32_o")
    names = [x.name for x in network.layers if x.type == "Pooling" or x.type == "Reshape"]
    broken = network
    for name in names:
        broken = _changed(broken, name, extra_key=1)
    with pytest.raises(UnsupportedError) as caught:
        graph_of(broken)
    assert all(f"layer '{name}'" in str(caught.value) for name in names)


def test_a_quantized_graph_is_not_quantized_again() -> None:
    graph = graph_of(_relu()[0])
    settings = parse_settings(AIPU.settings)
    assert AIPU.check(graph, settings) == ()
    assert AIPU.quantize(graph, settings) is graph
    with pytest.raises(OptionError, match=r"quantized already.*activations"):
        AIPU.quantize(graph, parse_settings(AIPU.settings, ["activations=asymmetric"]))


def test_files_without_constants() -> None:
    text = (data_path("golden", "aipu", "ops", "RELU", "sym") / "RELU_o.txt").read_text(encoding="utf-8")
    assert read_network(text, b"").is_quantized

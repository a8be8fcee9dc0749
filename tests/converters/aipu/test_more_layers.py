"""Further layers of the Optimizer: every field, every quantized value, and the file read back (cases/aipu_more)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.aipu_golden import read_ir
from tests.support.data import data_files
from tflq.converters.aipu import AIPU, graph_of, network_of
from tflq.converters.aipu.operators import OPERATORS
from tflq.converters.calibration import StatisticsOptions, calibrate
from tflq.converters.settings import parse_settings
from tflq.graph import Array, Graph, Range
from tflq.interpreter import Engine, lower
from tflq.schemas.aipu import Network, write_network

MODES = {
    "sym": ["weights=per_tensor"],
    "asym_pc": ["activations=asymmetric", "weights=per_channel"],
    "w16a16": [
        *("weights=per_tensor", "activation_bits=16", "weight_bits=16", "bias_bits=48"),
        "lut_items_in_bits=10",
    ],
}
OFF_BY_AN_ULP = ("ERF", "w16a16")
"""The error function of the tool's library is off by an ulp at one entry of its table."""


def _is_known(folder: Path) -> bool:
    case = folder.parent
    return all(layer.type in (*OPERATORS, "Input") for layer in read_ir(case, case.name).layers)


DUMPS = [path.parent for path in data_files("cases", "aipu_more", pattern="dump.json")]
CASES = [folder for folder in DUMPS if _is_known(folder)]
RECURRENT = [folder for folder in CASES if folder.parent.name.startswith(("GRU", "BASIC_LSTM"))]
"""Their ranges within the layer stand in no file: tflq calibrates them."""
OF_THE_TOOL = {
    "layer/states": (-0.5512416362762451, 0.7668590545654297),
    "layer/gate_sums": (-2.013561964035034, 1.7305546998977661),
    "layer/gates": (0.0, 0.8440854549407959),
    "layer/candidate_sums": (-1.6778115034103394, 1.8783924579620361),
    "layer/candidates": (-0.9047595858573914, 0.9384941458702087),
}
"""Of GRUV3_LAST, as the Optimizer prints them: its sums are added in another order, which moves an entry of a table."""
EQUAL = [f for f in CASES if (f.parent.name, f.name) != OFF_BY_AN_ULP and f not in RECURRENT]
has_cases = pytest.mark.skipif(not DUMPS, reason="TFLQ_DATA is not set: no IR of the vendor on this machine")


def _quantized(folder: Path) -> Graph:
    case = folder.parent
    graph = graph_of(read_ir(case, case.name))
    if folder in RECURRENT:
        graph = _calibrated(graph, case)
    ranges = json.loads((folder / "ranges.json").read_text(encoding="utf-8"))
    if case.name == "GRUV3_LAST":
        ranges |= OF_THE_TOOL
    elif folder in RECURRENT and "_LAST" not in case.name:
        ranges["layer/states"] = ranges["layer_0"]  # the same values
    for place, tensor in enumerate(graph.tensors):
        if tensor.name in ranges:
            limits = (np.asarray([limit], np.float32) for limit in ranges[tensor.name])
            graph.tensors[place] = replace(tensor, range=Range(*limits))
    return lower(AIPU.quantize(graph, parse_settings(AIPU.settings, MODES[folder.name])), AIPU.arithmetic)


def _calibrated(graph: Graph, case: Path) -> Graph:
    with np.load(case / "calibration.npz") as file:
        samples = [file[graph.tensors[t].name.removesuffix("_0")] for t in graph.inputs]
    shaped = [
        x.reshape(-1, *graph.tensors[t].shape).astype(np.float32) for x, t in zip(samples, graph.inputs, strict=True)
    ]
    return calibrate(graph, shaped, StatisticsOptions("mean", 1))


def _wanted(folder: Path) -> Network:
    return read_ir(folder, f"{folder.parent.name}_o")


def _unequal(graph: Graph, folder: Path, casts: bool = False) -> dict[str, int]:
    """Return name of a tensor -> how many of its quantized values differ."""
    with np.load(folder / "tensors.npz") as file, np.load(folder.parent / "samples.npz") as given:
        wanted = {name: file[name] for name in file.files}
        inputs = [_codes(graph, t, given[graph.tensors[t].name.removesuffix("_0")]) for t in graph.inputs]
    places = {tensor.name: t for t, tensor in enumerate(graph.tensors) if tensor.name in wanted}
    found = Engine(graph).run(inputs, list(places.values()))
    counts = {
        name: np.count_nonzero(found[t].reshape(wanted[name].shape) != wanted[name]) for name, t in places.items()
    }
    assert set(counts) == {name for name in wanted if not (casts and name.endswith("_Cast_tensor_"))}
    return {name: int(count) for name, count in counts.items() if count}


def _codes(graph: Graph, t: int, real: Array) -> Array:
    tensor = graph.tensors[t]
    values = real.reshape(-1, *tensor.shape)
    return values.astype(tensor.dtype.storage) if tensor.quantization is None else AIPU.encode(values, tensor)


@has_cases
@pytest.mark.parametrize("folder", EQUAL, ids=lambda folder: f"{folder.parent.name}-{folder.name}")
def test_every_field_and_every_value(folder: Path) -> None:
    graph, wanted = _quantized(folder), _wanted(folder)
    found = network_of(graph)
    for ours, theirs in zip(found.layers, wanted.layers, strict=True):
        assert (ours.name, ours.type, ours.bottoms, ours.tops) == (
            theirs.name,
            theirs.type,
            theirs.bottoms,
            theirs.tops,
        )
        assert list(ours.entries.items()) == list(theirs.entries.items()), ours.name
    assert _unequal(graph, folder) == {}


@has_cases
@pytest.mark.parametrize("folder", RECURRENT, ids=lambda folder: f"{folder.parent.name}-{folder.name}")
def test_every_field_of_a_recurrent_layer(folder: Path) -> None:
    """Ranges within the layer may be off in their last bits, which no multiplier and no other table shows here.

    A state that is never below 0 goes through a Cast in the tool's file, whose name has the time in it; tflq reads it
    as it is, which gives the same values.
    """
    graph, (*_, wanted) = _quantized(folder), _wanted(folder).layers
    (*_, found) = network_of(graph).layers
    assert (found.name, found.type, found.tops) == (wanted.name, wanted.type, wanted.tops)
    for key, ours in found.entries.items():
        assert ours == wanted.entries[key], key
    assert list(found.entries) == list(wanted.entries)
    assert _unequal(graph, folder, casts=True) == {}


@has_cases
@pytest.mark.parametrize("folder", CASES, ids=lambda folder: f"{folder.parent.name}-{folder.name}")
def test_the_file_read_back(folder: Path) -> None:
    wanted = _wanted(folder)
    graph = graph_of(wanted)
    assert write_network(network_of(graph)) == write_network(wanted)
    assert _unequal(graph, folder) == {}


@has_cases
def test_an_entry_of_a_table_may_differ_by_an_ulp() -> None:
    (folder,) = (one for one in CASES if (one.parent.name, one.name) == OFF_BY_AN_ULP)
    ours, theirs = (
        np.asarray(network.layers[-1].constants["lut"].data, np.int64)
        for network in (network_of(_quantized(folder)), _wanted(folder))
    )
    assert np.abs(ours - theirs).max() == 1
    assert np.count_nonzero(ours - theirs) == 1

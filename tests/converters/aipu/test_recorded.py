"""Single layers and small networks as the Compass Parser and Optimizer made them, recorded from the live tools.

recorded.json holds, for each case and mode, the ranges that the Optimizer calibrated, and digests of its quantised IR
and of every tensor of two samples; for a network also that of the Parser's float IR. `scripts/peer compass-recorded`
makes it of single_layers.py and forms.py, and names what differs from tflq.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.converters.aipu.recording import (
    CALIBRATED,
    digest_of_files,
    digest_of_tensor,
    ranged,
    settings_of,
    values_of,
)
from tests.converters.aipu.single_layers import LAYERS
from tests.support import float_forms as forms
from tflq.converters.aipu import AIPU, graph_of, network_of
from tflq.converters.aipu.emit_float import float_network_of
from tflq.converters.aipu.translate import translate
from tflq.converters.calibration import StatisticsOptions, calibrate
from tflq.converters.settings import parse_settings
from tflq.converters.settled import settled_graph
from tflq.converters.tflite import model_from_bytes, model_to_bytes
from tflq.graph import Array, Graph, float_view
from tflq.interpreter import lower
from tflq.schemas.aipu import Constant, Layer, Network, read_network, write_network

RECORDED = json.loads(Path(__file__).with_name("recorded.json").read_text(encoding="utf-8"))
CASES = [(kind, name, mode) for kind, cases in RECORDED.items() for name, one in cases.items() for mode in one["modes"]]
FLOAT = [
    (kind, name)
    for kind, name in dict.fromkeys((kind, name) for kind, name, _ in CASES)
    if not name.startswith(("arg pool", "count", "log_softmax", "one_hot (0.25", "product times"))
]
"""Those with a float kernel; some ranges are the layer's own: of LogSoftmax, of OneHot, of what MatMul takes in."""
NOT_READ_BACK = (
    "transposed ((3, 3), (1, 1), (1, 1, 1, 1))",  # float32 sums are a setting that stands in no file
    "reduce PROD (1, 2)",  # multipliers of 30 products go beyond their types at 16 bits
    "layer_norm of two",  # weights of two axes with scales for the last
)


def float_network(kind: str, name: str) -> Network:
    """The float IR: of one layer as it is given, of a .tflite as tflq translates it, with the Parser's faults."""
    if kind == "layers":
        return LAYERS[name].network()
    model = model_from_bytes(model_to_bytes(forms.built(name)[0]), name)
    return float_network_of(translate(float_view(settled_graph(model.main)), "model", faults=True), "model")


def samples_of(kind: str, name: str) -> list[Array]:
    return LAYERS[name].samples() if kind == "layers" else forms.built(name)[1]


@cache
def float_graph(kind: str, name: str) -> Graph:
    return graph_of(read_network(*write_network(float_network(kind, name))))


@cache
def calibrated(kind: str, name: str) -> Graph:
    """The float graph with the ranges that tflq finds, those within layers too."""
    given = [x[:CALIBRATED] for x in samples_of(kind, name)]
    return calibrate(float_graph(kind, name), given, StatisticsOptions("mean", 1))


def with_inner_ranges(kind: str, name: str) -> Graph:
    """The graph with ranges where those within layers are asked for, which stand in no file."""
    graph = float_graph(kind, name)
    return calibrated(kind, name) if any(node.intermediates for node in graph.nodes) else graph


@pytest.mark.parametrize("name", RECORDED["networks"])
def test_the_float_ir_is_the_parsers(name: str) -> None:
    text, binary = write_network(float_network("networks", name))
    assert digest_of_files(text.encode(), binary) == RECORDED["networks"][name]["float"]


@pytest.mark.parametrize(("kind", "name", "mode"), CASES)
def test_the_quantised_ir_and_every_value_are_the_optimizers(kind: str, name: str, mode: str) -> None:
    """Read back from its own file it has the same values."""
    wanted, samples = RECORDED[kind][name]["modes"][mode], [x[CALIBRATED:] for x in samples_of(kind, name)]
    graph = ranged(with_inner_ranges(kind, name), wanted["ranges"])
    quantised = lower(AIPU.quantise(graph, parse_settings(AIPU.settings, settings_of(mode))), AIPU.arithmetic)
    text, binary = write_network(network_of(quantised))
    assert digest_of_files(text.encode(), binary) == wanted["file"]
    found = values_of(quantised, samples, list(wanted["tensors"]))
    assert {key: digest_of_tensor(values) for key, values in found.items()} == wanted["tensors"]
    if name in NOT_READ_BACK:
        return
    again = values_of(graph_of(read_network(text, binary)), samples, list(wanted["tensors"]))
    assert {key: digest_of_tensor(values) for key, values in again.items()} == wanted["tensors"]


@pytest.mark.parametrize(("kind", "name"), FLOAT)
def test_ranges_are_the_optimizers(kind: str, name: str) -> None:
    """Its float library adds in another order, which moves the last bits."""
    graph = calibrated(kind, name)
    for found in RECORDED[kind][name]["modes"].values():
        for tensor in graph.tensors:
            if tensor.range is not None and tensor.name in found["calibrated"]:
                low, high = found["calibrated"][tensor.name]
                ours = float(tensor.range.minimum[0]), float(tensor.range.maximum[0])
                assert np.allclose(ours, (low, high), rtol=1e-5, atol=1e-5 * max(abs(low), abs(high), 1e-3)), (
                    tensor.name
                )


ONE_TABLE = ("LayerNorm", "InstanceNorm", "GroupNorm", "Normalization")
"""Their table of roots is always the same; a file with another one is refused."""


def _other_numbers(layer: Layer) -> Layer:
    """The layer with smaller multipliers and moved tables, as another tool may have decided them."""
    entries = dict(layer.entries)
    for key, entry in layer.entries.items():
        if key.endswith("scale_value") and isinstance(entry, (int, tuple)):
            numbers = entry if isinstance(entry, tuple) else (entry,)
            fewer = tuple(n - 1 if isinstance(n, int) and n > 1 else n for n in numbers)
            entries[key] = fewer if isinstance(entry, tuple) else fewer[0]
        elif isinstance(entry, Constant) and key in ("lut", "scale") and layer.type not in ONE_TABLE:
            entries[key] = replace(entry, data=np.roll(entry.data, 1))
    return replace(layer, entries=entries)


@pytest.mark.parametrize(("kind", "name", "mode"), [c for c in CASES if c[1] not in NOT_READ_BACK])
def test_a_files_own_numbers_stand(kind: str, name: str, mode: str) -> None:
    """Read and written again a file with other multipliers and tables is the same file."""
    graph = ranged(with_inner_ranges(kind, name), RECORDED[kind][name]["modes"][mode]["ranges"])
    found = network_of(lower(AIPU.quantise(graph, parse_settings(AIPU.settings, settings_of(mode))), AIPU.arithmetic))
    other = replace(found, layers=tuple(_other_numbers(layer) for layer in found.layers))
    text, binary = write_network(other)
    assert write_network(network_of(graph_of(read_network(text, binary)))) == (text, binary)

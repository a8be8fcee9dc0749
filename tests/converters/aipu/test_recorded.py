"""Single layers and small networks as the Compass Parser and Optimizer made them, recorded from the live tools.

tests/data/aipu_layers.json.xz holds, for each case and mode, the ranges that the Optimizer calibrated, and digests of
its quantized IR and of every tensor of two samples; for a network also that of the Parser's float IR. `scripts/peer
compass-recorded` makes it of single_layers.py, drawn_layers.py and networks.py, and names what differs from tflq.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests.converters.aipu.drawn_layers import DRAWN
from tests.converters.aipu.networks import built
from tests.converters.aipu.recording import (
    CALIBRATED,
    FAST,
    digest_of_files,
    digest_of_tensor,
    ranged,
    read_recorded,
    settings_of,
    values_of,
)
from tests.converters.aipu.single_layers import LAYERS, OneLayer
from tests.support.aipu_boxes import internal_values
from tflq.converters.aipu import AIPU, graph_of, network_of
from tflq.converters.aipu.emit import float_network_of
from tflq.converters.aipu.translate import translate
from tflq.converters.calibration import StatisticsOptions, calibrate
from tflq.converters.settings import parse_settings
from tflq.converters.settled import settled_graph
from tflq.converters.tflite import model_from_bytes, model_to_bytes
from tflq.errors import UnsupportedError
from tflq.graph import Array, DType, Graph, GraphBuilder, float_view
from tflq.interpreter import lower
from tflq.schemas.aipu import Constant, Layer, Network, read_network, write_network

RECORDED = read_recorded()
CASES = [(kind, name, mode) for kind, cases in RECORDED.items() for name, one in cases.items() for mode in one["modes"]]
WITHOUT_FLOAT = (
    *("bounding_box", "ctc_greedy_decoder", "detection_output", "max_pooling_with_arg_max", "max_roi_pool", "nms"),
    *("proposal", "pyramid_roi_align", "roi_align", "upsample_by_index"),
)
FIXED = ("bounding_box", "pyramid_roi_align", "roi_align")
"""Layers whose multipliers are always their own."""
FLOAT = [
    (kind, name)
    for kind, name in dict.fromkeys((kind, name) for kind, name, _ in CASES)
    if not name.startswith(
        ("arg pool", "count", "limits 0.5", "log_softmax", "one_hot (0.25", "product times", "the best")
    )
    and (kind == "networks" or {"layers": LAYERS, "drawn": DRAWN}[kind][name].operator not in WITHOUT_FLOAT)
]
"""Those with a float kernel; some ranges are the layer's own: of LogSoftmax, of OneHot, of what MatMul takes in.

And of a CLIP above 0, whose type holds 0 all the same; "the best" boxes are those of NMS.
"""
NOT_READ_BACK = (
    "transposed ((3, 3), (1, 1), (1, 1, 1, 1))",  # float32 sums are a setting that stands in no file
    "reduce PROD (1, 2)",  # multipliers of 30 products go beyond their types at 16 bits
    "layer_norm of two",  # weights of two axes with scales for the last
)


def float_network(kind: str, name: str) -> Network:
    """The float IR: of one layer as it is given, of a .tflite as tflq translates it, with the Parser's faults."""
    if kind != "networks":
        return layer_of(kind, name).network()
    model = model_from_bytes(model_to_bytes(built(name)[0]), name)
    return float_network_of(translate(float_view(settled_graph(model.main)), "model", faults=True), "model")


def samples_of(kind: str, name: str) -> list[Array]:
    return built(name)[1] if kind == "networks" else layer_of(kind, name).samples()


def layer_of(kind: str, name: str) -> OneLayer:
    return LAYERS[name] if kind == "layers" else DRAWN[name]


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
    if not any(node.intermediates for node in graph.nodes):
        return graph
    if graph.nodes[0].operator not in ("proposal", "detection_output"):
        return calibrated(kind, name)
    given = [x[:CALIBRATED] for x in samples_of(kind, name)]
    each = [
        internal_values(graph.nodes[0], graph.operands(0), [x[s : s + 1] for x in given]) for s in range(CALIBRATED)
    ]
    values = [np.stack([v.reshape(-1) for v in one]) for one in zip(*each, strict=True)]
    builder = GraphBuilder()
    inputs = [builder.input(f"v{k}", x.shape[1:], DType.FLOAT32) for k, x in enumerate(values)]
    found = calibrate(builder.build(inputs), values, StatisticsOptions("mean", 1))
    result = graph.copy()
    for t, inner in zip(inputs, graph.nodes[0].intermediates or (), strict=True):
        result.tensors[inner] = replace(graph.tensors[inner], range=found.tensors[t].range)
    return result


@pytest.mark.parametrize("name", RECORDED["networks"])
def test_the_float_ir_is_the_parsers(name: str) -> None:
    text, binary = write_network(float_network("networks", name))
    require_equal(name, "float IR", RECORDED["networks"][name]["float"], digest_of_files(text.encode(), binary))


@pytest.mark.parametrize(("kind", "name", "mode"), CASES)
def test_the_quantized_ir_and_every_value_are_the_optimizers(kind: str, name: str, mode: str) -> None:
    """Read back from its own file it has the same values."""
    wanted, samples = RECORDED[kind][name]["modes"][mode], [x[CALIBRATED:] for x in samples_of(kind, name)]
    graph = ranged(with_inner_ranges(kind, name), wanted["ranges"])
    quantized = lower(AIPU.quantize(graph, parse_settings(AIPU.settings, settings_of(mode))), AIPU.arithmetic)
    text, binary = write_network(network_of(quantized))
    require_equal(name, "file", wanted["file"], digest_of_files(text.encode(), binary))
    require_values(name, wanted["tensors"], quantized, samples)
    if name not in NOT_READ_BACK:
        require_values(f"{name}, read back", wanted["tensors"], graph_of(read_network(text, binary)), samples)


def require_values(name: str, expected: Mapping[str, str], graph: Graph, samples: Sequence[Array]) -> None:
    for tensor, values in values_of(graph, samples, list(expected)).items():
        require_equal(name, f"tensor {tensor}", expected[tensor], digest_of_tensor(values))


def require_equal(name: str, what: str, expected: str, actual: str) -> None:
    """Fail with a line for the layer and one for each digest."""
    if actual != expected:
        pytest.fail(f"{name}: {what}\nexpected: {expected}\nactual:   {actual}", pytrace=False)


@pytest.mark.parametrize(("kind", "name"), FLOAT)
def test_ranges_are_the_optimizers(kind: str, name: str) -> None:
    """Its float library adds in another order, which moves the last bits; a fast Softmax ends at 1."""
    graph = calibrated(kind, name)
    for mode, found in RECORDED[kind][name]["modes"].items():
        for tensor in graph.tensors:
            if mode not in FAST and tensor.range is not None and tensor.name in found["calibrated"]:
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
    """Read and written again a file with other multipliers and tables is the same file, or is refused for them."""
    graph = ranged(with_inner_ranges(kind, name), RECORDED[kind][name]["modes"][mode]["ranges"])
    found = network_of(lower(AIPU.quantize(graph, parse_settings(AIPU.settings, settings_of(mode))), AIPU.arithmetic))
    other = replace(found, layers=tuple(_other_numbers(layer) for layer in found.layers))
    text, binary = write_network(other)
    if graph.nodes and graph.nodes[0].operator in FIXED:
        with pytest.raises(UnsupportedError, match=r"the file states \w*scale_value=.*, the arithmetic has"):
            graph_of(read_network(text, binary))
        return
    assert write_network(network_of(graph_of(read_network(text, binary)))) == (text, binary)

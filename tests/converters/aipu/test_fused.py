"""Fused CLIP, LEAKYRELU and PRELU, biases of few bits, early shifts, groups: layers written as float IR."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from tflq.converters.aipu import AIPU, graph_of, network_of
from tflq.converters.aipu.weights import cleared
from tflq.converters.settings import parse_settings
from tflq.errors import UnsupportedError
from tflq.graph import Array, Graph, Range
from tflq.interpreter import Engine, lower
from tflq.schemas.aipu import Constant, Edge, Entry, Layer, Network, Value

Reals = NDArray[np.float64]
SIZE, INPUTS, OUTPUTS = 5, 6, 4
WINDOW: dict[str, Value] = {
    **{f"{name}_{axis}": value for name, value in (("kernel", 3), ("stride", 1), ("dilation", 1)) for axis in "xy"},
    **dict.fromkeys(("pad_left", "pad_right", "pad_top", "pad_bottom"), 1),
}
SLOPES = np.random.default_rng(8).uniform(-0.5, 1.5, OUTPUTS).astype(np.float32)
KINDS: dict[str, dict[str, Entry]] = {
    "NONE": {},
    "RELU": {},
    "CLIP": {"clip_min": -1.5, "clip_max": 4.0},
    "LEAKYRELU": {"negative_slope_type": "float32", "negative_slope_value": 0.15},
    "PRELU": {"negative_slope": Constant(SLOPES, "float32")},
}
MODES = [(a, w, b) for a in ("symmetric", "asymmetric") for w in ("per_tensor", "per_channel") for b in (8, 16)]


def _activated(kind: str, y: Reals, clip_min: float = -1.5) -> Reals:
    if kind == "CLIP":
        return np.clip(y, clip_min, 4.0)
    below = {"NONE": y, "RELU": y * 0, "LEAKYRELU": y * 0.15, "PRELU": y * SLOPES}[kind]
    return np.where(y < 0, below, y)


class _Case:
    """A convolution of 3x3 with a fused activation, and its float results on samples."""

    def __init__(self, kind: str, entries: Mapping[str, Entry], group: int = 1, spread: float = 1.0) -> None:
        rng = np.random.default_rng(9)
        self.weights = rng.normal(0, 0.3, (OUTPUTS, 3, 3, INPUTS // group)).astype(np.float32)
        self.weights[0] *= spread
        self.biases = rng.normal(0, 1, OUTPUTS).astype(np.float32)
        self.real = rng.uniform(-2, 3, (8, 1, SIZE, SIZE, INPUTS)).astype(np.float32)
        clip_min = entries.get("clip_min", -1.5)
        assert isinstance(clip_min, float)
        self.expected = _activated(kind, self._convolved(group), clip_min)
        constants = {"weights": Constant(self.weights, "float32"), "biases": Constant(self.biases, "float32")}
        arrays = {k: e for k, e in entries.items() if isinstance(e, Constant)}
        keys: dict[str, Value] = {k: e for k, e in entries.items() if not isinstance(e, Constant)}
        keys = {"num_output": OUTPUTS, **WINDOW, "group": group, "with_activation": kind, **keys}
        x, y = Edge("x_0", (1, SIZE, SIZE, INPUTS), "float32"), Edge("y_0", (1, SIZE, SIZE, OUTPUTS), "float32")
        layer = Layer("y", "Convolution", (x,), (y,), {**constants, **arrays, **keys})
        header: dict[str, Value] = {"model_name": "m", "input_tensors": ("x_0",), "output_tensors": ("y_0",)}
        self.network = Network(header, (Layer("x", "Input", (), (x,)), layer))

    def _convolved(self, group: int) -> Reals:
        padded = np.pad(self.real[:, 0].astype(np.float64), ((0, 0), (1, 1), (1, 1), (0, 0)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))
        own, each = INPUTS // group, OUTPUTS // group
        parts = [
            np.einsum("shwcij,oijc->shwo", windows[..., g * own : (g + 1) * own, :, :], self.weights[g * each :][:each])
            for g in range(group)
        ]
        sums: Reals = np.concatenate(parts, axis=-1)[:, None] + self.biases
        return sums

    def quantized(self, *settings: str) -> Graph:
        graph = graph_of(self.network)
        for t, values in ((graph.inputs[0], self.real), (graph.outputs[0], self.expected)):
            limits = [np.array([f(values)], np.float32) for f in (np.min, np.max)]
            graph.tensors[t] = replace(graph.tensors[t], range=Range(*limits))
        return lower(AIPU.quantize(graph, parse_settings(AIPU.settings, settings)), "aipu")

    def codes(self, graph: Graph) -> Array:
        x = AIPU.encode(self.real, graph.tensors[graph.inputs[0]])
        return np.asarray(Engine(graph).run([x])[graph.outputs[0]])

    def error(self, graph: Graph) -> float:
        """Return the largest difference from float in steps of the output."""
        affine = graph.tensors[graph.outputs[0]].affine
        steps = self.codes(graph).astype(np.float64) - affine.zero_point[0] - self.expected / affine.scale[0]
        return float(np.abs(steps).max())


def _sets(activations: str, weights: str, bits: int) -> list[str]:
    return [f"activations={activations}", f"weights={weights}", f"activation_bits={bits}", f"weight_bits={bits}"]


@pytest.mark.parametrize(("activations", "weights", "bits"), MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_close_to_float(kind: str, activations: str, weights: str, bits: int) -> None:
    """8 bits: 54 products with inputs and weights off by half a step.

    16 bits: M of 15 bits against 32767 quantized values.
    """
    case = _Case(kind, KINDS[kind])
    graph = case.quantized(*_sets(activations, weights, bits))
    assert case.error(graph) < (4 if bits == 8 else 12)
    assert graph.tensors[graph.outputs[0]].affine.signed == (kind != "RELU")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weights", ["per_tensor", "per_channel"])
def test_written_and_read_back(kind: str, weights: str) -> None:
    """The quantized IR runs the same integers and returns unchanged."""
    case = _Case(kind, KINDS[kind])
    graph = case.quantized(f"weights={weights}")
    network = network_of(graph)
    again = graph_of(network)
    np.testing.assert_array_equal(case.codes(again), case.codes(graph))
    assert network_of(again) == network


def test_keys_of_a_fused_layer() -> None:
    """Limits at 256 s_y; slope * 2^8 in its narrowest type; slopes * 2^12 in int16, the shift behind the multiplier."""
    entries = {k: network_of(_Case(k, e).quantized()).layers[1].entries for k, e in KINDS.items()}
    s = entries["CLIP"]["layer_top_scale"]
    assert isinstance(s, tuple)
    assert isinstance(s[0], float)
    fine = np.float32(s[0]) * np.float32(256)
    assert (entries["CLIP"]["clip_min"], entries["CLIP"]["clip_max"]) == (np.rint(fine * -1.5), np.rint(fine * 4))
    assert (entries["LEAKYRELU"]["negative_slope_value"], entries["LEAKYRELU"]["negative_slope_type"]) == (38, "uint8")
    slopes = entries["PRELU"]["negative_slope"]
    assert isinstance(slopes, Constant)
    assert slopes.dtype == "int16"
    np.testing.assert_array_equal(slopes.data, np.rint(SLOPES * 4096))
    keys = list(entries["PRELU"])
    assert keys[keys.index("unquantifiable") + 1 :][:5] == [
        *("scale_value", "shift_value", "shift_type", "scale_type", "negative_slope_shift")
    ]


def test_a_clip_above_zero_is_unsigned() -> None:
    case = _Case("CLIP", {"clip_min": 0.0, "clip_max": 4.0})
    graph = case.quantized()
    assert not graph.tensors[graph.outputs[0]].affine.signed
    assert case.error(graph) < 8  # steps of half the size


def test_other_fused_activations_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="with_activation=TANH; allowed is NONE, RELU, RELU6, CLIP, LEAKYRELU"):
        _Case("NONE", {"with_activation": "TANH"}).quantized()


@pytest.mark.parametrize(
    ("codes", "bits", "expected"),
    [
        ([1000, -1000], 16, [1000, -1000]),
        ([32767, -32768], 16, [32767, -32768]),
        ([32768, 5], 16, [32768, 4]),
        ([65536, -65537, 3], 16, [65536, -65540, 0]),
        ([0, -32769], 16, [0, -32770]),
        ([1 << 30, 12345], 0, [1 << 30, 12345]),
    ],
)
def test_effective_bits_clear_the_lowest_ones(codes: list[int], bits: int, expected: list[int]) -> None:
    """The largest of 32768 needs one bit more than 32767: floor to even; 65536 and -65537 need two more."""
    assert cleared(np.array(codes), bits).tolist() == expected


def test_few_effective_bits_of_a_bias() -> None:
    case = _Case("NONE", {})
    whole, cleared = (case.quantized(f"bias_effective_bits={bits}") for bits in (0, 8))
    ours, theirs = (next(t for t in g.tensors if t.name == "y/biases").data for g in (cleared, whole))
    assert ours is not None
    assert theirs is not None
    low, high = int(theirs.min()), int(theirs.max())
    k = int(np.ceil(max(np.log2(max(high, 1) / 127), np.log2(min(low, -1) / -128))))
    assert k > 0
    np.testing.assert_array_equal(ours, (theirs.astype(np.int64) >> k) << k)


@pytest.mark.parametrize("remain", [0, 10, 20, 40])
@pytest.mark.parametrize("weights", ["per_tensor", "per_channel"])
def test_remain_shift(remain: int, weights: str) -> None:
    """20 bits behind the bias are nearly as good as all.

    Fewer lose quantized values, and with 40 sums end at 32 bits.
    """
    case = _Case("NONE", {})
    sets = _sets("symmetric", weights, 16)
    plain, early = case.quantized(*sets), case.quantized(*sets, f"remain_shift={remain}")
    assert network_of(early).layers[1].entries["remain_shift"] == remain
    assert "remain_shift" not in network_of(plain).layers[1].entries
    np.testing.assert_array_equal(case.codes(graph_of(network_of(early))), case.codes(early))
    difference = np.abs(case.codes(early).astype(int) - case.codes(plain)).max()
    assert 0 < difference < 3 if remain == 20 else difference > 2


def test_remain_shift_leaves_sums_of_8_bits_alone() -> None:
    case = _Case("NONE", {})
    np.testing.assert_array_equal(case.codes(case.quantized("remain_shift=3")), case.codes(case.quantized()))


@pytest.mark.parametrize("group", [2])
def test_groups_share_a_scale(group: int) -> None:
    """With one scale a tensor asked for, a grouped convolution has one a group, and one multiplier a channel."""
    case = _Case("NONE", {}, group, spread=9.0)
    graph = case.quantized()
    weights = next(t for t in graph.tensors if t.name == "y/weights")
    largest = np.abs(case.weights).reshape(group, -1).max(axis=1)
    np.testing.assert_array_equal(np.float32(1 / weights.affine.scale), np.repeat(np.float32(127) / largest, 2))
    layer = network_of(graph).layers[1]
    assert {"scale", "shift", "weights_scale"} <= set(layer.constants)
    assert case.error(graph) < 6


@pytest.mark.parametrize("weights", ["per_tensor", "per_channel"])
def test_the_width_of_multipliers(weights: str) -> None:
    """12 bits: M between 2^11 and 2^12, sixteen times as near to the ratio of scales."""
    case = _Case("NONE", {})
    plain, wide = (case.quantized(f"weights={weights}", f"multiplier_bits={bits}") for bits in (0, 12))
    layer, usual = (network_of(graph).layers[1].entries for graph in (wide, plain))
    if weights == "per_tensor":
        assert (1 << 11) <= int(str(layer["scale_value"])) < (1 << 12)
        assert (layer["scale_type"], usual["scale_type"]) == ("uint16", "uint8")
        assert layer["shift_value"] == int(str(usual["shift_value"])) + 4
    again = graph_of(network_of(wide))
    np.testing.assert_array_equal(case.codes(again), case.codes(wide))
    assert network_of(again) == network_of(wide)
    assert np.abs(case.codes(wide).astype(int) - case.codes(plain)).max() <= 1

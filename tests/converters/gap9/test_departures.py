"""Layers whose result on the chip is not the right one are named, each with its reason."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.data import data_path
from tests.support.gap9_golden import quantised
from tests.support.gap9_nets import Net
from tflq import convert
from tflq.converters.gap9.departures import departures_of
from tflq.converters.tflite import read_model
from tflq.errors import UnsupportedError
from tflq.graph import Affine
from tflq.interpreter import lower


@pytest.mark.parametrize(
    ("network", "layers"),
    [
        ("reduces", {"SUM_0_2": "17.2"}),
        ("m_tile", {"TILE_0_1": "17.3"}),
        ("dwodd", {"DEPTHWISE_CONV_2D_0_5": "17.1", "DEPTHWISE_CONV_2D_0_6": "17.8"}),
        ("unet_1_39_mm", {"CONV_2D_0_2": "17.7"}),
        ("actalone", {"CONV_2D_0_2": "18"}),
        ("acts", {}),
    ],
)
def test_departures(tmp_path: Path, network: str, layers: dict[str, str]) -> None:
    found = convert(data_path("cases", "gap9_networks") / f"{network}.tflite", "gap9-ne16", tmp_path / "out")
    assert set(found.departures) == set(layers)
    for name, section in layers.items():
        assert section in found.departures[name]
    assert found.report()["departures"] == dict(found.departures)
    assert sum(label == "warning" for label, _ in found.page().facts) == len(layers)


def test_products_that_can_wrap_are_named() -> None:
    model = read_model(data_path("models", "vww_96_int8.tflite"))
    found = departures_of(lower(quantised(model, "gap9-sq8"), "gap9"))
    assert list(found) == ["DEPTHWISE_CONV_2D_0_23"]
    assert "in 1 channels: 122 (17.6)" in found["DEPTHWISE_CONV_2D_0_23"]


def test_two_hard_sigmoids_that_share_a_constant() -> None:
    """NNTool finds the first; the second product then takes the constant's quantized value for its number."""
    net = Net()
    sixth = net.builder.constant("sixth", np.array([127], np.int8), Affine.per_tensor(np.float32(1 / 6 / 127), 0))
    outputs = []
    for _ in range(2):
        x = net.conv(net.x, (0.0, 6.0), outputs=4 + len(outputs), activation="relu6")
        outputs.append(net.add("mul", [x, sixth], net.shapes[x], (0.0, 1.0), fused_activation_function="none"))
    for numerics, scale in (("exact", 1 / 6 / 127), ("nntool", 1.0)):
        graph = lower(quantised(net.model(*outputs), "gap9-ne16", [f"numerics={numerics}"]), "gap9")
        assert "17.10" in departures_of(graph)["MUL_0_3"]
        product = next(n for n in graph.nodes if n.name == "MUL_0_3")
        held = graph.tensors[product.inputs[1]]
        assert held.data is not None
        assert held.data.tolist() == [127]
        assert float(held.affine.scale[0]) == pytest.approx(scale, rel=0.01)


@pytest.mark.parametrize(
    ("first", "kernel", "bits", "fails"),
    [(1, 3, 8, True), (1, 1, 8, False), (0, 3, 8, False), (1, 1, 16, True), (0, 3, 16, False)],
)
def test_slices_on_which_nntool_fails(first: int, kernel: int, bits: int, fails: bool) -> None:
    net = Net()
    x = net.conv(net.x, (-1.0, 3.0))
    begin = net.builder.constant("begin", np.array([0, first, 0, 0], np.int32))
    size = net.builder.constant("size", np.array([1, 7, 8, 4], np.int32))
    kept = net.add("slice", [x, begin, size], (1, 7, 8, 4), (-1.0, 3.0))
    model = net.model(net.conv(kept, (-4.0, 4.0), (kernel, kernel)))
    sets = [f"feature_bits={bits}"]
    found = departures_of(lower(quantised(model, "gap9-ne16", sets), "gap9"))
    assert ("17.11" in found.get("SLICE_0_1", "")) == fails
    if fails:
        with pytest.raises(UnsupportedError, match="numerics=exact converts it"):
            quantised(model, "gap9-ne16", [*sets, "numerics=nntool"])

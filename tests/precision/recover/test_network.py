"""Recovery of the digits network: better on images that nothing was fitted to, and the same however it runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.support.digits_problem import model
from tflq.analysis.inputs import GivenSamples
from tflq.benchmarks.demo_data import demo_samples
from tflq.converters.dequantized import dequantized
from tflq.converters.settings import parse_settings
from tflq.converters.targets import find_target
from tflq.precision.recover import Recovery, RecoverySettings, network, outcome, probe, proposals, recover_network

FITTED, ASIDE, OTHERS = slice(0, 150), slice(150, 180), slice(180, 360)


def recovered(target: str, settings: Sequence[str], *, bias_only: bool = False) -> Recovery:
    found = find_target(target)
    (images,) = demo_samples(model().main).samples.take(0, 360)
    parts = (GivenSamples([images[FITTED]]), GivenSamples([images[ASIDE]]))
    chosen = parse_settings(found.settings, settings, ())
    return recover_network(model(), dequantized(model()), found, chosen, parts, RecoverySettings(bias_only=bias_only))


def sqnr(found: Recovery) -> tuple[float, float]:
    data = demo_samples(model().main)
    (images,) = data.samples.take(0, 360)
    return outcome(found, model(), "others", GivenSamples([images[OTHERS]]), data.labels[OTHERS]).sqnr_db


@pytest.mark.parametrize(
    ("target", "settings", "gain_db"),
    [
        ("gap9-ne16", ("weight_bits=2",), 6),
        ("gap9-ne16", ("weight_bits=4",), 3),
        ("aipu", ("weight_bits=4",), 3),
        ("aipu", ("weight_bits=3", "weights=per_channel"), 3),
    ],
)
def test_few_bits_come_nearer_to_float(target: str, settings: tuple[str, ...], gain_db: float) -> None:
    found = recovered(target, settings)
    assert "weights and bias" in {layer.kept for layer in found.layers}
    for layer in found.layers:
        before, after = layer.held_out_db
        assert after == before if layer.kept == "nothing" else after > before
    before, after = sqnr(found)
    assert after > before + gain_db


def test_the_result_does_not_depend_on_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = recovered("gap9-ne16", ("weight_bits=3",))
    monkeypatch.setattr(probe, "_CHUNK_BYTES", 20_000)
    parts = recovered("gap9-ne16", ("weight_bits=3",))
    assert parts.network.main.tensors == whole.network.main.tensors
    assert parts.layers == whole.layers


@pytest.mark.parametrize("settings", [("weight_bits=8",), ()])
def test_eight_bits_keep_their_weights(settings: tuple[str, ...]) -> None:
    found = recovered("gap9-ne16", settings)
    for node in found.plain.main.nodes:
        if len(node.inputs) > 1:
            old, new = (network.main.tensors[node.inputs[1]].data for network in (found.plain, found.network))
            assert np.array_equal(np.asarray(old), np.asarray(new))


def test_bias_only() -> None:
    found = recovered("gap9-ne16", ("weight_bits=3",), bias_only=True)
    assert {layer.kept for layer in found.layers} <= {"bias", "nothing"}
    assert all(layer.changed == 0 for layer in found.layers)
    before, after = sqnr(found)
    assert after > before


def test_a_target_that_keeps_floating_point_has_nothing_to_recover() -> None:
    found = recovered("onnx", ())
    assert {layer.kept for layer in found.layers} == {"nothing"}
    assert all("another form" in layer.reason for layer in found.layers)
    assert found.network.main.tensors == found.plain.main.tensors


def test_weights_that_the_quantiser_does_not_give_back_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proposals, "_gives_back", lambda placed, graph, of, rounding: bool(rounding.is_plain.all()))
    found = recovered("gap9-ne16", ("weight_bits=3",))
    assert {layer.kept for layer in found.layers} <= {"bias", "nothing"}
    narrow = [layer for layer in found.layers if layer.bits == 3]
    assert narrow
    assert all("does not give back" in layer.reason for layer in narrow)


def test_a_network_that_got_worse_aside_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    ratios = iter(range(1000, 0, -1))
    worse = lambda judge, execution, tensors: next(ratios) if len(tensors) == 1 else 0  # noqa: E731
    monkeypatch.setattr(network.Judge, "held_out_db", worse)
    found = recovered("gap9-ne16", ("weight_bits=3",))
    assert {layer.kept for layer in found.layers} == {"nothing"}
    assert "got worse on the samples kept aside" in found.reason
    assert found.network.main.tensors == found.plain.main.tensors

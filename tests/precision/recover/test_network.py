"""Recovery of the digits network: better on images that nothing was fitted to, and the same however it runs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.support.digits_problem import model
from tflq import limits
from tflq.api.demo import demo_samples
from tflq.converters.settings import parse_settings
from tflq.converters.settled import dequantized
from tflq.converters.targets import find_target
from tflq.errors import FormatError, LimitError
from tflq.precision.recover import (
    Recovery,
    RecoverySettings,
    network,
    outcome,
    prepare,
    proposals,
    recover_network,
    reference,
)
from tflq.precision.recover.journal import JournalFile
from tflq.precision.recover.network import Journal
from tflq.sampling import GivenSamples

FITTED, ASIDE, OTHERS = slice(0, 150), slice(150, 180), slice(180, 360)
FEW = slice(0, 40)
"""Fitted to where only equality counts, not the gain."""


def recovered(
    target: str,
    settings: Sequence[str],
    *,
    images: slice = FITTED,
    bias_only: bool = False,
    jobs: int = 1,
    journal: Journal | None = None,
) -> Recovery:
    found = find_target(target)
    (taken,) = demo_samples(model().main).samples.take(0, 360)
    parts = (GivenSamples([taken[images]]), GivenSamples([taken[ASIDE]]))
    chosen = parse_settings(found.settings, settings, ())
    prepared = prepare(model(), dequantized(model()), parts, RecoverySettings(bias_only=bias_only, jobs=jobs))
    return recover_network(prepared, found, chosen, journal=journal)


@cache
def three_bits() -> Recovery:
    return recovered("gap9-ne16", ("weight_bits=3",), images=FEW)


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


def test_the_result_depends_neither_on_chunks_nor_on_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = three_bits()
    monkeypatch.setattr(reference, "_CHUNK_BYTES", 20_000)
    parts = recovered("gap9-ne16", ("weight_bits=3",), images=FEW, jobs=3)
    assert parts.network.main.tensors == whole.network.main.tensors
    assert parts.layers == whole.layers


def test_interrupted_work_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = three_bits()
    file = tmp_path / "kept"
    recovered("gap9-ne16", ("weight_bits=3",), images=FEW, journal=JournalFile(file, "this"))
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:3]) + lines[3][:50])
    found = []
    begin = network.recover_layer
    monkeypatch.setattr(network, "recover_layer", lambda *a: (found.append(a[2].index), begin(*a))[1])
    again = recovered("gap9-ne16", ("weight_bits=3",), images=FEW, journal=JournalFile(file, "this"))
    assert len(found) == len(lines) - 3
    assert again.network.main.tensors == whole.network.main.tensors
    assert repr(again.layers) == repr(whole.layers)  # some figures are NaN
    assert file.read_bytes() == b"".join(lines)
    assert JournalFile(file, "another").find(0) is None
    file.write_bytes(b"{}\n")
    with pytest.raises(FormatError, match="line 1: is no layer of a recovery"):
        JournalFile(file, "this")


def test_memory_is_bounded_before_anything_runs() -> None:
    with (
        limits.apply_limits(limits.Limits(max_memory=100_000)),
        pytest.raises(LimitError, match="fewer rows need less"),
    ):
        recovered("gap9-ne16", ("weight_bits=3",))


@pytest.mark.parametrize("settings", [("weight_bits=8",), ()])
def test_eight_bits_keep_their_weights(settings: tuple[str, ...]) -> None:
    found = recovered("gap9-ne16", settings, images=FEW)
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
    found = recovered("onnx", (), images=FEW)
    assert {layer.kept for layer in found.layers} == {"nothing"}
    assert all("another form" in layer.reason for layer in found.layers)
    assert found.network.main.tensors == found.plain.main.tensors


def test_weights_that_the_quantizer_does_not_give_back_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proposals, "_gives_back", lambda placed, graph, of, rounding: bool(rounding.is_plain.all()))
    found = recovered("gap9-ne16", ("weight_bits=3",), images=FEW)
    assert {layer.kept for layer in found.layers} <= {"bias", "nothing"}
    narrow = [layer for layer in found.layers if layer.bits == 3]
    assert narrow
    assert all("does not give back" in layer.reason for layer in narrow)


def test_a_network_that_got_worse_aside_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    ratios = iter(range(1000, 0, -1))
    worse = lambda judge, execution, tensors: next(ratios) if len(tensors) == 1 else 0  # noqa: E731
    monkeypatch.setattr(network.Judge, "held_out_db", worse)
    found = recovered("gap9-ne16", ("weight_bits=3",), images=FEW)
    assert {layer.kept for layer in found.layers} == {"nothing"}
    assert "got worse on the samples kept aside" in found.reason
    assert found.network.main.tensors == found.plain.main.tensors

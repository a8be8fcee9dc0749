"""`scripts/coverage`: what it tells of each file, and that nothing but the name of an operator is a good reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from world import coverage
from world.coverage import Outcome, cover, samples_beside

from tests.support.data import data_path
from tflq.api.demo import demo_model_path
from tflq.converters.settings import Settings
from tflq.converters.targets import find_target, target_names
from tflq.graph import Graph


def test_the_demo_model_is_converted_for_every_target() -> None:
    found = list(cover(demo_model_path(), "digits", target_names()))
    assert [row.target for row in found] == list(target_names())
    assert all(row.outcome is Outcome.CONVERTED for row in found), found


def test_a_float_model_is_calibrated(tmp_path: Path) -> None:
    path = data_path("corpus", "single_op_float", "CONV_2D.tflite")
    assert all(row.outcome is Outcome.CONVERTED for row in cover(path, "conv", ("tflite", "openvino")))
    (tmp_path / "net.float.tflite").write_bytes(path.read_bytes())
    (tmp_path / "net.samples.npz").write_bytes(b"no archive")
    (row,) = cover(tmp_path / "net.float.tflite", "conv", ("tflite",))
    assert row.outcome is Outcome.NOT_CALIBRATED
    assert "net.samples.npz" in row.refusals[0].reason


def test_samples_lie_beside(tmp_path: Path) -> None:
    for name in ("a.samples.npz", "a.b.samples.npz"):
        assert samples_beside(tmp_path / "a.b.float.tflite") in {None, tmp_path / "a.samples.npz"}
        (tmp_path / name).touch()
    assert samples_beside(tmp_path / "a.b.float.tflite") == tmp_path / "a.b.samples.npz"
    assert samples_beside(tmp_path / "c.tflite") is None


def test_no_model(tmp_path: Path) -> None:
    path = tmp_path / "a.tflite"
    path.write_bytes(b"no model at all")
    (row,) = cover(path, "a", ("tflite",))
    assert row.outcome is Outcome.NOT_READ


@pytest.mark.parametrize(
    ("line", "operator", "outcome"),
    [
        ("operator 3 (atan2 'a'): no mapping", "atan2", Outcome.NOT_COVERED),
        ("target x: operator 3 (atan2 'a (b): c'): no mapping", "atan2", Outcome.NOT_COVERED),
        ("operator 3 (mean 'a'): over axes [1]", "mean", Outcome.SHAPE),
        ("an input of shape (1, 8, 4)", "", Outcome.SHAPE),
        ("1 of 9 tensors have no range (first 'x')", "", Outcome.BORDER),
        ("the network has no output", "", Outcome.OTHER),
    ],
)
def test_kinds_of_refusals(line: str, operator: str, outcome: Outcome, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(_graph: Graph, _settings: Settings) -> tuple[str, ...]:
        return ("operator 1 (gelu 'g'): no mapping", line)

    monkeypatch.setattr(coverage, "find_target", lambda name: replace(find_target(name), check=check))
    (row,) = cover(demo_model_path(), "digits", ("tflite",))
    assert row.outcome is outcome
    assert [r.operator for r in row.refusals] == ["gelu", operator]


def test_internal_errors_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(_graph: Graph, _settings: Settings) -> tuple[str, ...]:
        raise KeyError("shape")

    monkeypatch.setattr(coverage, "find_target", lambda name: replace(find_target(name), check=check))
    (row,) = cover(demo_model_path(), "digits", ("tflite",))
    assert row.outcome is Outcome.FAILED
    assert row.refusals[0].reason == "KeyError: 'shape'"

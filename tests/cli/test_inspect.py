"""`tflq inspect` shows what is in the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command import tflq
from tests.support.data import data_files, data_path
from tests.support.tracked import ROOT
from tflq.cli import main

DIGITS = ROOT / "tflq" / "data" / "digits.tflite"

# Multiply-accumulates of the MLPerf Tiny reference models, counted by hand from the layers' shapes.
MACS = {
    "kws_ref_model": 64 * 125 * 40 + 4 * (64 * 125 * 9 + 64 * 125 * 64) + 64 * 12,
    "ad01_int8": 2 * 640 * 128 + 6 * 128 * 128 + 2 * 128 * 8,
}


def test_text() -> None:
    out = tflq("inspect", DIGITS).out
    assert "input  0 " in out
    assert "conv_2d" in out
    assert "softmax" in out
    assert "total" in out


def test_tensors_are_listed_on_request() -> None:
    plain, full = tflq("inspect", DIGITS).out, tflq("inspect", DIGITS, "--tensors").out
    assert full.startswith(plain[: plain.index("every operator")] if "every operator" in plain else plain[:200])
    assert "constant" in full


@pytest.mark.parametrize("name", MACS)
def test_macs(name: str) -> None:
    (graph,) = tflq("inspect", data_path("models", f"{name}.tflite"), "--json").json["graphs"]
    assert graph["macs"] == MACS[name]
    assert graph["macs"] == sum(operator["macs"] for operator in graph["operators"])


def test_json_has_everything() -> None:
    path = data_path("models", "kws_ref_model.tflite")
    report = tflq("inspect", path, "--json").json
    (graph,) = report["graphs"]
    assert report["size_bytes"] == path.stat().st_size
    assert report["metadata"] == {"min_runtime_version": 16}
    entry = graph["tensors"][graph["inputs"][0]]
    assert (entry["dtype"], entry["shape"], entry["shape_signature"]) == ("int8", [1, 49, 10, 1], [-1, 49, 10, 1])
    assert entry["quantisation"]["zero_point"] == [83]
    assert entry["range"]["maximum"][0] == pytest.approx(25.5295, abs=1e-4)
    assert graph["operators"][0]["name"] == "CONV_2D_0_0"


@pytest.mark.parametrize("path", data_files("corpus"), ids=lambda path: path.stem)
def test_every_model_of_the_corpus(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(path), "--tensors"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert main(["inspect", str(path), "--json"]) == 0

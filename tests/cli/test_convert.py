"""`tflq convert` writes all files of a target or none, and says how far TFLite is from the target's arithmetic."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.command import tflq
from tests.support.data import data_path
from tests.support.tracked import ROOT
from tflq import SampleOptions, convert
from tflq.cli import main

DIGITS = ROOT / "tflq" / "data" / "digits.tflite"
TARGETS = ("gap9-ne16", "gap9-sq8")


@pytest.mark.parametrize("target", TARGETS)
def test_files_and_report(target: str, tmp_path: Path) -> None:
    done = tflq("convert", DIGITS, "-t", target, "-o", "a/b", "--json", cwd=tmp_path)
    assert (done.status, done.err) == (0, "")
    report = done.json
    written = {str(path.relative_to(tmp_path)): path.stat().st_size for path in (tmp_path / "a/b").iterdir()}
    assert report["files"] == written
    assert {Path(name).suffix for name in written} >= {".json", ".npz", ".tflite"}
    assert [layer["index"] for layer in report["layers"]] == list(range(len(report["layers"])))
    assert {layer["engine"] for layer in report["layers"]} >= {"sq8"}
    assert all(layer["reason"] for layer in report["layers"])


@pytest.mark.usefixtures("oracle")
@pytest.mark.parametrize("target", TARGETS)
def test_the_emitted_model_runs_in_tflite(target: str, tmp_path: Path) -> None:
    done = tflq("convert", DIGITS, "-t", target, "-o", "out", "-n", "5", "--json", cwd=tmp_path)
    found = done.json["emitted_tflite"]
    assert (found["samples"], found["elements"]) == (5, 50)
    assert found["largest_lsb"] < 20
    layers = [tensor["largest_lsb"] for tensor in found["tensors"].values()]
    assert len(layers) >= 10
    assert layers[0] <= 1
    (path,) = (tmp_path / "out").glob("*.tflite")
    assert tflq("verify", path, "-n", "5").status == 0


def test_table_names_engine_and_reason(tmp_path: Path) -> None:
    done = tflq(
        "convert", DIGITS, "-t", "gap9-ne16", "-l", "0:use_ne16=false", "-s", "weight_bits=4", "-o", "out", cwd=tmp_path
    )
    lines = done.out.splitlines()
    first = next(line for line in lines if "CONV_2D_0_0 " in line)
    later = next(line for line in lines if "CONV_2D_0_2 " in line)
    assert first.split()[3] == "sq8"
    assert first.endswith("use_ne16 is false")
    assert " 4 bits " in later
    assert "ne16" in later


def test_twice_the_same_bytes(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        assert main(["convert", str(DIGITS), "-t", "gap9-ne16", "-o", str(tmp_path / folder)]) == 0
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_other_files_in_the_folder_stay(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.txt").write_text("mine")
    assert tflq("convert", DIGITS, "-t", "gap9-sq8", "-o", "out", "--force", cwd=tmp_path).status == 0
    assert (tmp_path / "out" / "notes.txt").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_float_model_is_refused(tmp_path: Path) -> None:
    model = data_path("models", "pretrainedResnet.tflite")
    line = tflq("convert", model, "-t", "gap9-ne16", "-o", "out", cwd=tmp_path).refused()
    assert "tensors have no range" in line
    assert "calibrate" in line
    assert list(tmp_path.iterdir()) == []


def test_without_an_oracle_it_converts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tflq.oracle.package.is_installed", lambda name: False)
    assert main(["convert", str(DIGITS), "-t", "gap9-sq8", "-o", str(tmp_path / "out"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert "pip install" in report["emitted_tflite"]
    assert len(list((tmp_path / "out").iterdir())) == len(report["files"])


def test_targets_are_listed() -> None:
    done = tflq("targets")
    assert all(f"{name}: " in done.out for name in TARGETS)
    report = tflq("targets", "gap9-ne16", "--json").json
    (target,) = report["targets"]
    keys = {setting["key"]: setting for setting in target["settings"]}
    assert (keys["weight_bits"]["minimum"], keys["weight_bits"]["maximum"]) == (2, 8)


def test_run_in_a_targets_arithmetic(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.load(ROOT / "tflq" / "data" / "digits_test.npz")["images"][:3])
    done = tflq(
        "run", DIGITS, "-i", "x.npy", "-t", "gap9-ne16", "--all-tensors", "-o", "out.npz", "--json", cwd=tmp_path
    )
    kinds = {tensor["dtype"] for tensor in done.json["tensors"]}
    assert {"uint8", "int16"} <= kinds


def test_report_says_how_close_layers_are_to_float(tmp_path: Path) -> None:
    done = tflq("convert", DIGITS, "-t", "aipu", "-o", "out", "-n", "7", "--json", cwd=tmp_path)
    report = done.json
    assert report["similarity"] == {"samples": 7}
    figures = [layer["similarity"] for layer in report["layers"]]
    assert all(0.99 < f["cosine"] <= 1 and 0.99 < f["requantized_cosine"] <= 1 for f in figures)
    assert all(0 <= f["requantized_differing"] <= 1 and f["requantized_largest"] >= 0 for f in figures)
    done = tflq("convert", DIGITS, "-t", "aipu", "-o", "out", "-n", "7", "--force", cwd=tmp_path)
    assert f"{figures[0]['cosine']:.6f}" in next(line for line in done.out.splitlines() if line.startswith("0 "))
    assert "cosine: of each layer's float result and the target's, 7 samples" in done.out


def test_similarity_is_measured_on_the_calibration_samples(tmp_path: Path) -> None:
    images = np.load(ROOT / "tflq" / "data" / "digits_test.npz")["images"]
    np.save(tmp_path / "x.npy", images[:40])
    done = tflq("convert", DIGITS, "-t", "aipu", "-o", "a", "--calibrate", "x.npy", "--json", cwd=tmp_path)
    assert done.json["similarity"] == {"samples": 32}
    np.save(tmp_path / "y.npy", images[:3])
    options = ("--calibrate", "x.npy", "-i", "y.npy", "--json")
    assert tflq("convert", DIGITS, "-t", "aipu", "-o", "b", *options, cwd=tmp_path).json["similarity"] == {"samples": 3}


def test_trace_passes_prints_the_lines_that_a_pass_changes(tmp_path: Path) -> None:
    asked = ("convert", DIGITS, "-t", "gap9-sq8", "-n", "1", "--trace-passes")
    done = tflq(*asked, "--pass", "choose_types", "-o", "a", cwd=tmp_path)
    assert done.status == 0
    lines = done.out.splitlines()
    titles = [line for line in lines if line.startswith("pass ")]
    assert titles == [
        "pass choose_types of gap9: types follow from ranges and readers (docs/rules/gap9/types.md#types)"
    ]
    assert {line[:4] for line in lines if line.startswith(("  - ", "  + "))} == {"  - ", "  + "}
    refused = tflq(*asked, "--pass", "absent", "-o", "b", cwd=tmp_path)
    assert refused.status == 2
    assert "no pass 'absent' changed the graph; remove_conversions, state_ranges, find_columns, " in refused.err
    assert not (tmp_path / "b").exists()
    report = tflq(*asked, "--json", "-o", "c", cwd=tmp_path).json
    assert report["passes"][0]["name"] == "remove_conversions"


def test_a_trace_without_a_change_says_so() -> None:
    unchanged = replace(convert(DIGITS, "nnie", samples=SampleOptions(count=1)), changes=())
    (table,) = [table for table in unchanged.tables() if table.name == "passes"]
    assert (list(table.rows), list(table.lines)) == ([], ["no pass changed the graph"])

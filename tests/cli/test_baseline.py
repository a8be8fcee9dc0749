"""Frozen runs: what changes is said, by tensor and sample; JUnit XML; the pytest plug-in."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.support.command import tflq
from tests.support.faults import DIGITS, LAYER, corrupted_weights
from tests.support.tracked import ROOT
from tflq.converters.tflite import model_to_bytes

NAME = "digits.tflq.json"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(DIGITS, tmp_path / "digits.tflite")
    images = np.load(ROOT / "tflq" / "data" / "digits_test.npz")["images"][:6]
    np.save(tmp_path / "x.npy", images)
    return tmp_path


def freeze(folder: Path, *options: object) -> None:
    done = tflq("verify", "digits.tflite", "-i", "x.npy", "--freeze", NAME, *options, cwd=folder)
    assert (done.status, done.err) == (0, "")


def corrupt(folder: Path) -> str:
    """Change one weight channel and return the name of the tensor whose layer it belongs to."""
    model = corrupted_weights()
    (folder / "digits.tflite").write_bytes(model_to_bytes(model))
    return model.main.tensors[model.main.nodes[LAYER].outputs[0]].name


@pytest.mark.parametrize("options", [(), ("-t", "gap9-ne16", "-s", "weight_bits=4")])
def test_a_run_that_has_not_changed(folder: Path, options: tuple[str, ...]) -> None:
    freeze(folder, *options)
    moved = folder.parent / f"{folder.name}_moved"
    shutil.move(folder, moved)
    done = tflq("verify", "--baseline", moved / NAME)
    assert done.status == 0
    assert "OK: 0 changes in " in done.out


def test_a_changed_weight_is_named_from_its_layer_on(folder: Path) -> None:
    freeze(folder)
    names = [tensor["name"] for tensor in json.loads((folder / NAME).read_text())["tensors"]]
    first = corrupt(folder)
    report = tflq("verify", "--baseline", NAME, "--json", cwd=folder)
    assert report.status == 1
    assert report.json["files"] == ["digits.tflite: the file has changed since"]
    changed = [change["tensor"] for change in report.json["changes"]]
    assert changed[0] == first
    assert set(changed) <= set(names[names.index(first) :])
    assert report.json["changes"][0]["what"].startswith("6 of 6 samples differ, the first is number 0")


def test_the_sample_that_changed_is_named(folder: Path) -> None:
    freeze(folder)
    samples = np.load(folder / "x.npy")
    samples[4] = samples[4][..., ::-1, :, :]
    np.save(folder / "x.npy", samples)
    done = tflq("verify", "--baseline", NAME, cwd=folder)
    assert done.status == 1
    assert "x.npy: the file has changed since" in done.out
    assert "1 of 6 samples differ, the first is number 4" in done.out


def test_junit_counts_what_pytest_and_ci_servers_read(folder: Path) -> None:
    freeze(folder)
    first = corrupt(folder)
    tflq("verify", "--baseline", NAME, "--junit", "result.xml", cwd=folder)
    suite = ElementTree.parse(folder / "result.xml").getroot()[0]
    failed = [case.get("name") for case in suite if case.find("failure") is not None]
    assert failed[0] == first
    assert (int(suite.get("failures", "")), int(suite.get("tests", ""))) == (len(failed), len(suite))


@pytest.mark.usefixtures("oracle")
def test_junit_of_a_run_against_tflite(folder: Path) -> None:
    done = tflq("verify", "digits.tflite", "-n", "2", "--junit", "result.xml", cwd=folder)
    assert done.status == 0
    suite = ElementTree.parse(folder / "result.xml").getroot()[0]
    assert (suite.get("failures"), suite.get("tests")) == ("0", "10")


def run_pytest(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tflq.pytest_plugin", "-p", "no:cacheprovider", "."]
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def test_the_plug_in_runs_a_baseline_as_tests(folder: Path) -> None:
    freeze(folder)
    done = run_pytest(folder)
    assert (done.returncode, "11 passed" in done.stdout) == (0, True), done.stdout
    first = corrupt(folder)
    done = run_pytest(folder)
    assert done.returncode == 1
    assert f"'{first}': 6 of 6 samples differ" in done.stdout
    (folder / "digits.tflite").unlink()
    assert "digits.tflite: cannot be read" in run_pytest(folder).stdout


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is no JSON"),
        ("[]", "is no baseline: tflq_baseline is None, not 1"),
        ('{"tflq_baseline": 1, "tflq": "0", "run": {}, "files": {}}', "is damaged: KeyError 'tensors'"),
        (
            '{"tflq_baseline": 1, "tflq": "0", "run": {"calibration": {}}, "files": {}, "tensors": []}',
            "'run' is damaged: KeyError 'files'",
        ),
    ],
)
def test_no_baseline_is_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / NAME).write_text(content)
    assert message in tflq("verify", "--baseline", NAME, cwd=tmp_path).refused()


def test_options_that_contradict_each_other(folder: Path) -> None:
    freeze(folder)
    assert "--baseline repeats a frozen run" in tflq("verify", "--baseline", NAME, "-n", "3", cwd=folder).refused()
    assert "name a MODEL" in tflq("verify").refused()
    assert "--freeze and --baseline" in tflq("verify", "digits.tflite", "-t", "gap9-ne16", cwd=folder).refused()
    assert "omit --junit" in tflq("verify", DIGITS, "--freeze", "b.json", "--junit", "x.xml").refused()
    assert "cannot be read" in tflq("verify", "--baseline", "missing.json", cwd=folder).refused()

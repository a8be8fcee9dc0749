"""`tflq demo`, as a newcomer sees it."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.support.command import Outcome, tflq
from tests.support.tracked import ROOT
from tflq.api.demo import Demo, demo
from tflq.cli import main
from tflq.converters.targets import target_names

DIGITS = ROOT / "tflq" / "data" / "digits.tflite"


@pytest.fixture(scope="module")
def result(oracle: object) -> Demo:
    """The demo as Python returns it."""
    return demo()


@pytest.fixture(scope="module")
def done(result: Demo) -> Outcome:
    """The demo as the command prints it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tflq.cli.demo.demo", lambda: result)
        return tflq("demo")


def test_story(done: Outcome) -> None:
    assert (done.status, done.err) == (0, "")
    assert re.search(r"^OK: 0 of \d{6,} elements differ from TFLite ", done.out, re.MULTILINE)
    for name in ("as is", *target_names()):
        assert re.search(rf"^{name} +3\d\d +360 +9\d\.\d ", done.out, re.MULTILINE), done.out


def test_commands_of_the_story_run(done: Outcome, quick: bool) -> None:
    start = f"  {sys.executable} -m tflq "
    lines = [line.strip() for line in done.out.splitlines() if line.startswith(start)]
    assert len(lines) >= 4
    for line in lines[: 1 if quick else 2]:
        subprocess.run(shlex.split(line), cwd=ROOT, check=True, capture_output=True)


@pytest.mark.parametrize("path", ["", "here"])
def test_the_story_calls_the_program_as_the_shell_finds_it(
    result: Demo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], path: str
) -> None:
    monkeypatch.setattr("tflq.cli.demo.demo", lambda: result)
    program = tmp_path / "tflq"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path) if path else "/nowhere")
    monkeypatch.setattr(sys, "argv", [str(program)])
    assert main(["demo"]) == 0
    called = "tflq" if path else str(program)
    assert f"\n  {called} targets\n" in capsys.readouterr().out


def test_json(result: Demo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tflq.cli.demo.demo", lambda: result)
    report = tflq("demo", "--json").json
    assert report["tflite"]["differing"] == 0
    assert [row["name"] for row in report["rows"]] == ["as is", "float", *target_names()]
    assert all(row["accuracy_percent"] > 95 for row in report["rows"])
    # Targets `tflite` and `tflm` keep the outputs of a model that is quantized already.
    assert all(
        (row["name"] in ("tflite", "tflm") or row["largest_change"] > 0) and row["largest_change"] < 0.5
        for row in report["rows"][1:]
    )


def test_without_an_oracle(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("tflq.oracle.package.is_installed", lambda name: False)
    result = demo()
    monkeypatch.setattr("tflq.cli.demo.demo", lambda: result)
    assert main(["demo"]) == 0
    out = capsys.readouterr().out
    assert "pip install tflq[litert]" in out
    assert "gap9-ne16" in out
    assert main(["demo", "--json"]) == 0
    assert "pip install" in json.loads(capsys.readouterr().out)["tflite"]


def test_it_writes_its_files(tmp_path: Path) -> None:
    """The labeled folder is a data set of `--data`: 356 of the 360 digits are right."""
    folder = tmp_path / "out"
    assert tflq("demo", "-o", folder).out.strip() == f"{folder}: digits.tflite, images.npy, digits"
    assert "is not empty" in tflq("demo", "-o", folder).refused()
    assert np.load(folder / "images.npy").shape == (360, 1, 8, 8, 1)
    done = tflq("bench", "--model", folder / "digits.tflite", "--data", folder / "digits", "--json")
    assert (done.json["rows"][0]["right"], done.json["rows"][0]["samples"]) == (356, 360)

"""`tflq.convert` and `tflq.convert_all`: what the command prints and writes, from Python."""

from __future__ import annotations

from pathlib import Path

import pytest

import tflq
from tests.support.command import facts_text
from tests.support.command import tflq as command
from tests.support.tracked import ROOT
from tflq.errors import OptionError

DIGITS = ROOT / "tflq" / "data" / "digits.tflite"
FEW = tflq.SampleOptions(count=4)


def test_result_and_files_are_those_of_the_command(tmp_path: Path) -> None:
    target = tflq.TargetOptions("gap9-ne16", settings=("weight_bits=4",))
    found = tflq.convert(str(DIGITS), target, tmp_path / "a", FEW)
    done = command(
        "convert", DIGITS, "-t", "gap9-ne16", "-s", "weight_bits=4", "-o", tmp_path / "a", "-n", 4, "--force", "--json"
    )
    assert facts_text(found.to_dict()) == done.facts
    assert {Path(path).name: Path(path).read_bytes() for path in found.files} == dict(found.artefacts)


def test_without_a_folder_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = tflq.convert(DIGITS, "nnie", samples=FEW)
    assert list(tmp_path.iterdir()) == []
    assert sorted(found.files) == sorted(found.artefacts)
    assert "cosine" in (found._repr_html_() or "")


def test_a_template_converts_to_the_same(tmp_path: Path) -> None:
    found = tflq.convert(DIGITS, tflq.TargetOptions("aipu", layers=("0:weight_bits=16",)), samples=FEW)
    found.write_template(tmp_path / "t.json")
    calibration = tflq.CalibrationOptions(template=str(tmp_path / "t.json"))
    again = tflq.convert(DIGITS, "aipu", samples=FEW, calibration=calibration)
    assert again.artefacts == found.artefacts


def test_every_target() -> None:
    pytest.importorskip("onnx", reason="onnx is not installed: it comes with tflq[onnx], and two targets write with it")
    found = tflq.convert_all(DIGITS, samples=FEW)
    assert found.is_complete
    assert {row["target"] for row in found.rows()} >= {"aipu", "gap9-ne16", "nnie", "openvino", "tpu-mlir"}
    with pytest.raises(OptionError, match="no task is called"):
        tflq.convert_all(DIGITS, samples=tflq.SampleOptions(data="kws9=x"))

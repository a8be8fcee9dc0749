"""`tflq.convert` and `tflq.convert_all`: what the command prints and writes, from Python."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import tflq
from tests.support.command import facts_text
from tests.support.command import tflq as command
from tests.support.tracked import ROOT
from tflq.errors import OptionError
from tflq.graph import Affine, DType

DIGITS = ROOT / "tflq" / "data" / "digits.tflite"
FEW = tflq.SampleOptions(count=4)


def test_result_and_files_are_those_of_the_command(tmp_path: Path) -> None:
    target = tflq.TargetOptions("gap9-ne16", settings=("weight_bits=4",))
    found = tflq.convert(str(DIGITS), target, tmp_path / "a", FEW)
    done = command(
        "convert", DIGITS, "-t", "gap9-ne16", "-s", "weight_bits=4", "-o", tmp_path / "a", "-n", 4, "--force", "--json"
    )
    assert facts_text(found.to_dict()) == done.facts
    assert {Path(path).name: Path(path).read_bytes() for path in found.files} == dict(found.artifacts)


def test_without_a_folder_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = tflq.convert(DIGITS, "nnie", samples=FEW)
    assert list(tmp_path.iterdir()) == []
    assert sorted(found.files) == sorted(found.artifacts)
    assert "cosine" in (found._repr_html_() or "")


def test_a_template_converts_to_the_same(tmp_path: Path) -> None:
    found = tflq.convert(DIGITS, tflq.TargetOptions("aipu", layers=("0:weight_bits=16",)), samples=FEW)
    found.write_template(tmp_path / "t.json")
    calibration = tflq.CalibrationOptions(template=str(tmp_path / "t.json"))
    again = tflq.convert(DIGITS, "aipu", samples=FEW, calibration=calibration)
    assert again.artifacts == found.artifacts


def test_every_target() -> None:
    pytest.importorskip("onnx", reason="onnx is not installed: it comes with tflq[onnx], and two targets write with it")
    found = tflq.convert_all(DIGITS, samples=FEW)
    assert found.is_complete
    assert {row["target"] for row in found.rows()} >= {"aipu", "gap9-ne16", "nnie", "openvino", "tpu-mlir"}
    with pytest.raises(OptionError, match="no task is called"):
        tflq.convert_all(DIGITS, samples=tflq.SampleOptions(data="kws9=x"))


def test_a_large_network_is_not_compared_on_unnamed_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tflq.api.samples.UNREQUESTED_MACS", 10**6)
    skipped = tflq.convert(DIGITS, "tflite")
    assert isinstance(skipped.measured, str)
    assert skipped.compared == skipped.measured
    assert re.match(r"32 random samples take 0\.00\d+ billion multiply-accumulates; name samples", skipped.measured)
    assert all(row["similarity"] is None for row in skipped.rows())
    counted = tflq.convert(DIGITS, "tflite", samples=FEW)
    assert not isinstance(counted.measured, str)
    assert counted.artifacts == skipped.artifacts
    named = tflq.convert(DIGITS, "tflite", samples=np.zeros((1, 8, 8, 1), np.int8))
    assert not isinstance(named.measured, str)


def test_a_sample_that_a_kernel_refuses_does_not_stop_the_conversion() -> None:
    builder = tflq.GraphBuilder("equal")
    affine = Affine.per_tensor(1 / 256, -128)
    x = builder.input("x", (1, 600), DType.INT8, Affine.per_tensor(1e-6, 0))
    graph = builder.build([builder.add("softmax", [x], (1, 600), DType.INT8, affine, beta=1.0)])
    found = tflq.convert(tflq.Model([graph]), "tflite", samples=FEW)
    assert "sum up to 512 or more" in str(found.measured)
    assert "sum up to 512 or more" in str(found.compared)
    assert "model.tflite" in found.artifacts

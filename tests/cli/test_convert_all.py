"""`tflq convert --target all`: every target's files, and one table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.command import tflq
from tests.support.data import data_path
from tests.support.faults import digits, with_tensor
from tests.support.html_page import read_page
from tests.support.tracked import ROOT
from tflq.converters.targets import target_names
from tflq.converters.tflite import model_to_bytes

DIGITS = ROOT / "tflq" / "data" / "digits.tflite"


def test_every_target_writes_its_files(tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="onnx is not installed: it comes with tflq[onnx], and two targets write with it")
    done = tflq("convert", DIGITS, "-t", "all", "-n", "8", "-o", "out", "--json", cwd=tmp_path)
    assert (done.status, done.err) == (0, "")
    rows = {row["target"]: row for row in done.json["targets"]}
    assert set(rows) == set(target_names())
    for name, row in rows.items():
        written = {path.name: path.stat().st_size for path in (tmp_path / "out" / name).iterdir()}
        assert row["files"] == written
        assert row["size_bytes"] == sum(written.values())
        assert 0 <= row["score_percent"] <= 100
        assert row["worst_layer"] or name in ("tflite", "tflm", "aipu")  # the same integers; tensors of other names
    assert any("use_ne16 is false" in text for text in rows["gap9-sq8"]["constraints"])


def test_no_score_for_random_samples_of_one_class(tmp_path: Path) -> None:
    """Every target agrees with a model that always returns one class, which measures nothing."""
    model = digits()
    index = model.main.nodes[-2].inputs[2]
    bias = model.main.tensors[index]
    data = np.array(bias.data)
    data[7] += 1 << 20
    (tmp_path / "seven.tflite").write_bytes(model_to_bytes(with_tensor(model, index, replace(bias, data=data))))
    arguments = ("convert", "seven.tflite", "-t", "all", "-n", "8", "-o", "out")
    done = tflq(*arguments, "--report", "page.html", cwd=tmp_path)
    words = "no score: the model returns class 7 for 8 of 8 random samples; name samples of its task"
    (line,) = [line for line in done.out.splitlines() if line.startswith("gap9-ne16")]
    assert "100.0 %" not in done.out
    assert line.split()[1] == "none"
    assert line.endswith(words)
    assert read_page(tmp_path / "page.html").verdict.endswith(f"support the model; {words}")
    rows = tflq(*arguments, "--force", "--json", cwd=tmp_path).json["targets"]
    assert {(row["refused"], row["score_percent"]) for row in rows if not row["refused"]} == {(False, None)}


def test_a_target_that_refuses_has_its_row_and_the_others_their_files(tmp_path: Path) -> None:
    model = data_path("corpus", "single_op_float", "CONV_2D.tflite")
    done = tflq("convert", model, "-t", "all", "-n", "2", "-o", "out", cwd=tmp_path)
    assert done.status == 1
    assert "GAP9 takes ranges from the file" in done.out
    assert not (tmp_path / "out" / "gap9-ne16").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("-t", "all", "-s", "weight_bits=4"), "--target all uses the defaults of each"),
        (("-t", "all", "--data", "kws9=x"), "no task is called 'kws9'; there are kws01"),
        (("-t", "all", "--data", "x"), "x: no such folder"),
    ],
)
def test_refusals(tmp_path: Path, options: tuple[str, ...], words: str) -> None:
    assert words in tflq("convert", DIGITS, *options, "-o", "out", cwd=tmp_path).refused()
    assert not (tmp_path / "out").exists()

"""`tflq recover` writes a float model that every other command takes, or refuses and writes nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from tests.support.command import tflq
from tests.support.digits_problem import write_labeled
from tests.support.tracked import ROOT
from tflq.converters.tflite import read_model
from tflq.graph import DType

DIGITS = ROOT / "tflq" / "data" / "digits.tflite"
THREE = ("-t", "gap9-ne16", "-s", "weight_bits=3")


def test_the_file_is_what_bench_then_measures(tmp_path: Path) -> None:
    folder = tmp_path / "images"
    folder.mkdir()
    write_labeled(folder, 200)
    spans = ("--take", "0:120", "--verify", "0:200")
    done = tflq("recover", DIGITS, *THREE, "-d", folder, *spans, "-o", "r.tflite", "--json", cwd=tmp_path)
    assert done.status == 0, done.err
    (_, _, verified) = done.json["results"]
    _, after = verified["accuracy_percent"]
    assert verified["sqnr_db"][1] > verified["sqnr_db"][0] + 3
    model = read_model(tmp_path / "r.tflite")
    about = json.loads(model.metadata["tflq.recovered"])
    assert (about["target"], about["settings"], about["samples"]) == ("gap9-ne16", ["weight_bits=3"], 120)
    assert about["labels_used"] is False
    assert model.main.tensors[model.main.inputs[0]].dtype is DType.FLOAT32
    images, _ = np.load(ROOT / "tflq" / "data" / "digits_test.npz").values()
    np.save(tmp_path / "x.npy", read_real(images.reshape(-1, 1, 8, 8, 1)[:200]))
    run = tflq("run", "r.tflite", *THREE, "-i", "x.npy", "-o", "y.npz", cwd=tmp_path)
    assert run.status == 0, run.err
    (answers,) = np.load(tmp_path / "y.npz").values()
    labels = np.loadtxt(folder / "y_labels.csv", delimiter=",", usecols=2, dtype=int)
    assert 100 * np.mean(answers.reshape(200, -1).argmax(1) == labels) == pytest.approx(after)


def read_real(images: np.ndarray) -> np.ndarray:
    affine = read_model(DIGITS).main.tensors[read_model(DIGITS).main.inputs[0]].affine
    return ((images.astype(np.float64) - affine.zero_point) * affine.scale).astype(np.float32)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "name them with --data or --input, or accept random samples with --random"),
        (("--random", "--take", "0:1"), "recovery needs 2 samples or more"),
        (("--random", "--take", "5:3"), "is not a range"),
        (("--random", "-s", "weight_bits=1"), "weight_bits"),
        (("-i", "nowhere.npy"), "nowhere.npy"),
    ],
)
def test_refusals_write_nothing(arguments: tuple[str, ...], words: str, tmp_path: Path) -> None:
    done = tflq("recover", DIGITS, *THREE, *arguments, "-o", "r.tflite", cwd=tmp_path)
    assert done.status == 2
    assert words in done.err
    assert list(tmp_path.iterdir()) == []


def test_random_samples_are_warned_of(tmp_path: Path) -> None:
    done = tflq("recover", DIGITS, *THREE, "--random", "-n", 30, "-o", "r.tflite", cwd=tmp_path)
    assert done.status == 0
    assert "weights are fitted to random samples" in done.err
    assert "weights are fitted to 30 samples; 100 or more are better" in done.err
    assert re.search(r"^fitted to +27 .* -> ", done.out, re.MULTILINE)
    assert re.search(r"^kept aside +3 .* -> ", done.out, re.MULTILINE)


def test_convert_and_bench_take_the_short_way(tmp_path: Path) -> None:
    folder = tmp_path / "images"
    folder.mkdir()
    write_labeled(folder, 160)
    done = tflq("convert", DIGITS, *THREE, "--recover", "-d", folder, "--take", 100, "-o", "out", cwd=tmp_path)
    assert done.status == 0, done.err
    about = json.loads((tmp_path / "out" / "recovered.json").read_text())
    assert about["samples"] == 100
    assert {layer["kept"] for layer in about["recovered"]} >= {"weights and bias"}
    done = tflq("bench", "-m", DIGITS, "-d", folder, *THREE, "--recover", "0:100", "--json", cwd=tmp_path)
    assert done.status == 0, done.err
    assert [(row["name"], row["samples"]) for row in done.json["rows"]] == [
        ("as is", 60),
        ("gap9-ne16", 60),
        ("gap9-ne16, recovered", 60),
    ]
    for arguments, words in (
        (("convert", DIGITS, *THREE, "--recover", "-o", "new"), "name them"),
        (("convert", DIGITS, "-t", "all", "--recover", "-d", folder, "-o", "new"), "--recover needs a single target"),
        (("bench", "-m", DIGITS, "-d", folder, "--recover", "0:100"), "--recover needs --target and --mode accuracy"),
        (("bench", "-m", DIGITS, "-d", folder, *THREE, "--recover", "0:160"), "leaves no samples"),
    ):
        refused = tflq(*arguments, cwd=tmp_path)
        assert refused.status == 2
        assert words in refused.err
    assert not (tmp_path / "new").exists()

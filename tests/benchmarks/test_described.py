"""A folder of images as a labeled data set: the same answers as the digits' own arrays give."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.support.command import tflq
from tests.support.faults import DIGITS

IMAGES = pytest.importorskip("PIL.Image", reason="Pillow is not installed: it comes with tflq[image]")
DESCRIPTION = {
    "kind": "images",
    "files": "digits",
    "size": [8, 8],
    "channels": "gray",
    "scale": 1 / 255,
    "labels": "folders",
    "classes": [f"digit {n}" for n in range(10)],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    archive = np.load(DIGITS.parent / "digits_test.npz")
    for n, (image, label) in enumerate(zip(archive["images"][:60], archive["labels"][:60], strict=True)):
        path = tmp_path / "digits" / f"digit {label}" / f"{n}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = (image.reshape(8, 8).astype(np.int16) + 128).astype(np.uint8)
        IMAGES.fromarray(pixels).save(path)
    (tmp_path / "data.json").write_text(json.dumps(DESCRIPTION))
    return tmp_path


def test_bench_counts_what_the_arrays_give(folder: Path) -> None:
    archive = np.load(DIGITS.parent / "digits_test.npz")
    np.save(folder / "x.npy", archive["images"][:60].reshape(60, 1, 8, 8, 1))
    tflq("run", DIGITS, "-i", "x.npy", "-o", "y.npz", cwd=folder)
    (scores,) = np.load(folder / "y.npz").values()
    right = int((scores.reshape(60, 10).argmax(axis=1) == archive["labels"][:60]).sum())
    row = tflq("bench", "-m", DIGITS, "-d", "data.json", "--json", cwd=folder).json["rows"][0]
    assert (row["right"], row["samples"]) == (right, 60)
    seven = tflq("bench", "-m", DIGITS, "-d", "data.json", "--take", "7", "--json", cwd=folder).json
    assert seven["rows"][0]["samples"] == 7


def test_sensitivity_and_calibration_take_it_too(folder: Path) -> None:
    arguments = ("sensitivity", DIGITS, "-t", "gap9-ne16", "--data", "data.json", "--take", "0:20", "--jobs", "1")
    assert tflq(*arguments, "--json", cwd=folder).json["samples"] == 20
    tflq("dequantize", DIGITS, "-o", "float.tflite", cwd=folder)
    done = tflq("convert", "float.tflite", "-t", "tflite", "--calibrate", "data.json", "-o", "out", cwd=folder)
    assert (done.status, done.err) == (0, "")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": "none", "classes": []}, 'has no labels; add "labels": "folders"'),
        (
            {"classes": ["digit 1"]},
            "folder 'digit 0' is not one of the classes digit 1; add it, or move its files away",
        ),
        ({"labels": "none"}, 'has classes without labels; add "labels": "folders"'),
        ({"classes": [*DESCRIPTION["classes"], "more"]}, "has 11 classes, the model's output has 10 elements"),
    ],
)
def test_refusals(folder: Path, change: dict[str, object], message: str) -> None:
    (folder / "data.json").write_text(json.dumps({**DESCRIPTION, **change}))
    assert message in tflq("bench", "-m", DIGITS, "-d", "data.json", cwd=folder).refused()

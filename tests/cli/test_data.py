"""--data and --calibrate take TASK=DIR everywhere, feed a model as its task does, and mean percent by an accuracy."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.support.command import tflq, without_run
from tests.support.data import data_path
from tests.support.faults import DIGITS
from tflq.benchmarks.tasks import find_task

MODEL, FLOAT = "kws_ref_model.tflite", "kws_ref_model_float32.tflite"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Both keyword models, twelve clips with labels, and the same clips as the float model takes them."""
    clips = data_path("datasets", "kws01")
    lines = (clips / "y_labels.csv").read_text().splitlines()[:12]
    (tmp_path / "clips").mkdir()
    (tmp_path / "clips" / "y_labels.csv").write_text("\n".join(lines) + "\n")
    for line in lines:
        shutil.copy(clips / line.split(",")[0], tmp_path / "clips")
    for name in (MODEL, FLOAT):
        shutil.copy(data_path("models", name), tmp_path)
    task = find_task("kws01")
    stored = np.stack([np.fromfile(tmp_path / "clips" / line.split(",")[0], np.int8) for line in lines])
    real = (stored.astype(np.float64) - task.zero_point) * np.float64(np.float32(task.scale))
    np.save(tmp_path / "real.npy", real.astype(np.float32).reshape(12, 49, 10, 1))
    return tmp_path


@pytest.mark.parametrize("model", [MODEL, FLOAT])
def test_data_feeds_a_model_as_its_task_does(folder: Path, model: str) -> None:
    given = (("-i", "real.npy", "--real") if model == MODEL else ("-i", "real.npy"), ("--data", "kws01=clips"))
    for n, samples in enumerate((*given, ("-i", "kws01=clips"))):
        assert tflq("run", model, *samples, "--all-tensors", "-o", f"{n}.npz", cwd=folder).status == 0
    first, *others = (np.load(folder / f"{n}.npz") for n in range(3))
    for other in others:
        assert all((other[name] == first[name]).all() for name in first.files)


def test_a_float_model_is_calibrated_by_its_task(folder: Path) -> None:
    for name, source in (("a", "real.npy"), ("b", "kws01=clips")):
        done = tflq("convert", FLOAT, "-t", "gap9-sq8", "-n", "2", "--calibrate", source, "-o", name, cwd=folder)
        assert done.status == 0, done.err
    written = {path.name: path.read_bytes() for path in (folder / "a").iterdir()}
    assert written
    assert written == {path.name: path.read_bytes() for path in (folder / "b").iterdir()}


def test_the_task_stands_with_the_folder(folder: Path) -> None:
    by_argument = tflq("bench", "kws01", "-m", MODEL, "--data", "clips", "--json", cwd=folder)
    by_option = tflq("bench", "-m", MODEL, "--data", "kws01=clips", "--json", cwd=folder)
    assert without_run(by_option.json) == without_run(by_argument.json)
    line = tflq("bench", "ic01", "-m", MODEL, "--data", "kws01=clips", cwd=folder).refused()
    assert "TASK is ic01, --data is for kws01; name one of them" in line


SHARES = {
    "bench": ("bench", "-m", MODEL, "-d", "kws01=clips", "--at-least", "0.89"),
    "search": ("search", MODEL, "-t", "gap9-ne16", "-d", "kws01=clips", "--at-least", "0.89"),
}


@pytest.mark.parametrize("command", SHARES)
def test_a_share_in_place_of_percent_is_questioned(folder: Path, command: str) -> None:
    assert "--at-least 0.89 is 0.89 %; write 89 for 89 %" in tflq(*SHARES[command], cwd=folder).refused()


def test_two_kinds_of_samples_are_refused(tmp_path: Path) -> None:
    line = tflq("run", DIGITS, "-i", "x.npy", "--data", "y", "-o", "o.npz", cwd=tmp_path).refused()
    assert "--data and --input both name samples; omit one of them" in line

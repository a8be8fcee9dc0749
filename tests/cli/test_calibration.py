"""--calibrate, --strategy, --batch-size and --ranges: ranges for targets, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.support.command import tflq
from tflq.converters.tflite import model_to_bytes
from tflq.graph import DType, GraphBuilder, Model

DATA = np.random.default_rng(2).normal(0, 2, (20, 1, 6)).astype(np.float32)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    b = GraphBuilder()
    x = b.input("x", (1, 6), DType.FLOAT32)
    rng = np.random.default_rng(1)
    inputs = [x, b.constant("w", rng.normal(0, 1, (4, 6)).astype(np.float32)), b.constant("b", np.ones(4, np.float32))]
    attributes = {"fused_activation_function": "relu", "keep_num_dims": False, "weights_format": "default"}
    y = b.add("fully_connected", inputs, (1, 4), DType.FLOAT32, **attributes)
    (tmp_path / "model.tflite").write_bytes(model_to_bytes(Model([b.build([y])])))
    np.save(tmp_path / "data.npy", DATA)
    (tmp_path / "ranges.csv").write_text("tensor,min,max\nx,-3,5\n", encoding="utf-8")
    return tmp_path


def clipping(folder: Path, *options: str) -> float:
    done = tflq("convert", "model.tflite", "-t", "nnie", "-o", "out", "--force", *options, cwd=folder)
    assert done.status == 0, done.err
    table = json.loads((folder / "out" / "model_clipping.json").read_text(encoding="utf-8"))
    return float(table["layers"][0]["activation"]["maximum"])


def test_samples_give_the_range(folder: Path) -> None:
    assert clipping(folder, "--calibrate", "data.npy") == float(np.abs(DATA).max())
    assert (folder / "out" / "model_samples.txt").read_text(encoding="utf-8").count("\n") == 20


def test_strategy_and_batch_size(folder: Path) -> None:
    low, high = DATA[:4].min(), DATA[:4].max()
    for batch in (DATA[4:8], DATA[8:12], DATA[12:16], DATA[16:]):
        low = np.float32(0.9) * low + np.float32(0.1) * batch.min()
        high = np.float32(0.9) * high + np.float32(0.1) * batch.max()
    found = clipping(folder, "--calibrate", "data.npy", "--strategy", "mean", "--batch-size", "4")
    assert found == float(max(-low, high))


def test_momentum(folder: Path) -> None:
    batches = [DATA[i : i + 4] for i in range(0, 20, 4)]
    options = ("--calibrate", "data.npy", "--strategy", "mean", "--batch-size", "4")
    assert clipping(folder, *options, "--momentum", "0") == float(np.abs([batches[-1].min(), batches[-1].max()]).max())
    assert clipping(folder, *options, "--momentum", "1") == float(np.abs([batches[0].min(), batches[0].max()]).max())


def test_shuffled_samples(folder: Path) -> None:
    """With momentum 0 the last batch decides, and which one that is follows from the seed."""
    options = ("--calibrate", "data.npy", "--strategy", "mean", "--batch-size", "4", "--momentum", "0")
    for seed in (0, 5):
        last = DATA[np.random.default_rng(seed).permutation(20)[16:]]
        assert clipping(folder, *options, "--shuffle", str(seed)) == float(np.abs([last.min(), last.max()]).max())


def test_bins(folder: Path) -> None:
    """A quantile is known to a bin: more bins come nearer to the true one."""
    options = ("--calibrate", "data.npy", "--strategy", "80percentile")
    wanted = max(-np.quantile(DATA, 0.1), np.quantile(DATA, 0.9))
    coarse, fine = (abs(clipping(folder, *options, "--bins", str(bins)) - wanted) for bins in (16, 4096))
    assert fine < coarse


def test_a_file_of_ranges_wins(folder: Path) -> None:
    assert clipping(folder, "--ranges", "ranges.csv") == 5
    assert clipping(folder, "--ranges", "ranges.csv", "--calibrate", "data.npy") == 5


def test_run_takes_them_too(folder: Path) -> None:
    done = tflq(
        "run", "model.tflite", "-t", "nnie", "--calibrate", "data.npy", "-i", "data.npy", "-o", "y.npz", cwd=folder
    )
    assert done.status == 0, done.err
    with np.load(folder / "y.npz") as file:
        assert next(iter(file.values())).shape == (20, 1, 4)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "1 of 1 tensors have no range (first 'x')"),
        (("--strategy", "mean"), "add --calibrate FILE"),
        (("--momentum", "0.5"), "add --calibrate FILE"),
        (("--bins", "64"), "add --calibrate FILE"),
        (("--shuffle", "1"), "add --calibrate FILE"),
        (("--calibrate", "data.npy", "--momentum", "2"), "--momentum"),
        (("--calibrate", "data.npy", "--bins", "1"), "--bins"),
        (("--calibrate", "data.npy", "--strategy", "median"), "unknown calibration strategy 'median'"),
        (("--calibrate", "nothing.npy"), "nothing.npy"),
        (("--calibrate", "bad.npy"), "NaN"),
        (("--calibrate", "inf.npy"), "inf.npy: calibration: tensor 'x' is inf in sample 7"),
        (("--calibrate", "inf.npy", "--shuffle", "3"), "inf.npy: calibration: tensor 'x' is inf in sample 7"),
        (("--calibrate", "samples", "--batch-size", "2"), "2.bin: calibration: tensor 'x' is -inf in sample 2"),
        (("--calibrate", "gaps"), "in sample 1; only numbers are allowed; the file is "),
        (("--calibrate", "short"), "1.bin: has 20 bytes, which is not a multiple of the 24 bytes of one sample"),
        (("--calibrate", "wrong.npy"), "wrong.npy: input 'x' needs shape [1, 6]"),
        (("--calibrate", "whole.npy"), "whole.npy: input 'x' needs float32; the array is int32"),
        (("--ranges", "unknown.csv"), "unknown.csv, line 2: the model has no tensor 'z'"),
        (("--ranges", "short.csv"), "short.csv, line 1: found 2 fields"),
        (("--ranges", "data.npy"), "is not UTF-8 text"),
    ],
)
def test_what_is_refused_writes_nothing(folder: Path, options: tuple[str, ...], words: str) -> None:
    for name, value in (("bad", np.nan), ("inf", np.inf)):
        data = DATA.copy()
        data[7, 0, 0] = value
        np.save(folder / f"{name}.npy", data)
    for name, values in (("samples", (0, 1, -np.inf)), ("gaps", (0, np.nan)), ("short", (0, 1))):
        (folder / name).mkdir()
        for number, value in enumerate(values):
            content = np.full(6, value, np.float32).tobytes()
            (folder / name / f"{number}.bin").write_bytes(content[:20] if (name, number) == ("short", 1) else content)
    np.save(folder / "wrong.npy", np.zeros((2, 5), np.float32))
    np.save(folder / "whole.npy", np.zeros((2, 6), np.int32))
    (folder / "unknown.csv").write_text("x,0,1\nz,0,1\n", encoding="utf-8")
    (folder / "short.csv").write_text("x,0\n", encoding="utf-8")
    done = tflq("convert", "model.tflite", "-t", "nnie", "-o", "out", "--force", *options, cwd=folder)
    assert words in done.refused()
    assert not (folder / "out").exists()


def test_without_a_target_they_are_refused(folder: Path) -> None:
    done = tflq("run", "model.tflite", "--calibrate", "data.npy", cwd=folder)
    assert "add --target" in done.refused()

"""Anomalies: windows, errors and AUC are those of an independent computation on TFLite's own outputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.anomalies import STRIDE_BYTES, WINDOW_BYTES, WINDOWS_A_FILE, write_anomalies
from tests.support.data import data_path
from tflq.benchmarks.anomaly import load_windows, squared_errors, summarize_errors, window_errors
from tflq.benchmarks.tasks import find_task
from tflq.converters.tflite import read_model
from tflq.errors import InputError
from tflq.graph import Graph
from tflq.oracle import Oracle
from tflq.parallel.executions import as_is

AD01 = find_task("ad01")


def windows(path: Path) -> np.ndarray:
    data = path.read_bytes()
    starts = range(0, len(data) - WINDOW_BYTES + 1, STRIDE_BYTES)
    return np.stack([np.frombuffer(data[start : start + WINDOW_BYTES], "<f4") for start in starts])


def judged(oracle: Oracle, model: Path, samples: np.ndarray) -> np.ndarray:
    """The mean squared error of each window by TFLite and float64."""
    content = model.read_bytes()
    details = oracle.describe(content).tensors
    graph = read_model(model).main
    given, made = (graph.tensors[t].quantization for t in (graph.inputs[0], graph.outputs[0]))
    assert details
    if given is None:
        (outputs,) = oracle.run(content, [samples[:, None]], tensors="outputs").outputs
        real = outputs.astype(np.float64)
    else:
        ratio = (samples / given.scale).astype(np.float64)
        rounded = np.sign(ratio) * np.floor(np.abs(ratio) + 0.5)
        codes = np.clip(rounded + given.zero_point, -128, 127).astype(np.int8)
        (outputs,) = oracle.run(content, [codes[:, None]], tensors="outputs").outputs
        real = (outputs.astype(np.float64) - made.zero_point) * made.scale.astype(np.float64)
    return ((real.reshape(samples.shape) - samples) ** 2).mean(axis=1)


@pytest.mark.parametrize("name", ["ad01_int8", "ad01_fp32"])
def test_a_synthetic_set(oracle: Oracle, tmp_path: Path, name: str) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    model = data_path("models", f"{name}.tflite")
    folder = write_anomalies(tmp_path)
    loaded = load_windows(AD01, folder, read_model(model).main)
    counts: list[int] = []
    found = summarize_errors(name, window_errors(as_is(read_model(model)), loaded, counts.append), loaded)
    files = [windows(folder / f"{n}.bin") for n in range(12)]
    errors = judged(oracle, model, np.concatenate(files)).reshape(12, WINDOWS_A_FILE).mean(axis=1)
    assert found.errors == pytest.approx(errors, rel=1e-5)  # sums of float32 in order, beside float64
    expected = metrics.roc_auc_score(np.arange(12) % 2, errors)
    assert 0.5 < expected < 1
    assert found.auc == (errors[1::2, None] > errors[::2]).sum() / 36  # counted pair by pair
    assert found.auc == pytest.approx(expected, abs=1e-12)
    assert (found.normal, found.anomalies, found.windows, sum(counts)) == (6, 6, 144, 144)


def test_the_published_file_has_196_windows(tmp_path: Path) -> None:
    source = data_path("datasets", "ad01", "normal_id_01_00000000_hist_librosa.bin")
    (tmp_path / "a.bin").write_bytes(source.read_bytes())
    (tmp_path / "y_labels.csv").write_text("a.bin,2,0,2560,512\n")
    model = read_model(data_path("models", "ad01_int8.tflite"))
    loaded = load_windows(AD01, tmp_path, model.main)
    assert loaded.samples.count == 196
    assert (loaded.samples.float_windows(3, 9) == windows(source)[3:9]).all()
    assert summarize_errors("as is", window_errors(as_is(model), loaded), loaded).auc is None


def test_an_error_is_a_sum_of_float32_in_order() -> None:
    inputs = np.zeros((1, 3), np.float32)
    outputs = np.array([[4096.0, 1.0, 1.0]], np.float32)  # 2^24 + 1 + 1 stays 2^24 where sums are float32, in order
    assert squared_errors(inputs, outputs)[0] == np.float32(2**24) / np.float32(3)
    assert squared_errors(inputs, outputs[:, ::-1])[0] == np.float32(2**24 + 2) / np.float32(3)


@pytest.fixture(scope="module")
def graph() -> Graph:
    return read_model(data_path("models", "ad01_int8.tflite")).main


@pytest.mark.parametrize(
    ("line", "size", "message"),
    [
        ("a.bin,2,0", 2560, "windows of 2560 bytes .*; its lines state none"),
        ("a.bin,2,0,1280,512", 2560, "its lines state windows of 1280 bytes every 512"),
        ("a.bin,2,0,2560,510", 2560, "its lines state windows of 2560 bytes every 510"),
        ("a.bin,2,0,2560,0", 2560, "line 1: windows of 2560 bytes every 0; both must be > 0"),
        ("a.bin,3,0,2560,512", 2560, "has 3 classes, ad01 has 2: 0 normal, 1 anomaly"),
        ("a.bin,2,0,2560,512", 2556, "a.bin: has 2556 bytes; needed are float32 values, at least one window of 2560"),
        ("a.bin,2,0,2560,512", 2562, "a.bin: has 2562 bytes"),
        ("b.bin,2,0,2560,512", 2560, "1 of 1 files are missing: b.bin"),
    ],
)
def test_refused(graph: Graph, tmp_path: Path, line: str, size: int, message: str) -> None:
    (tmp_path / "y_labels.csv").write_text(f"{line}\n")
    (tmp_path / "a.bin").write_bytes(bytes(size))
    with pytest.raises(InputError, match=message):
        load_windows(AD01, tmp_path, graph)


def test_not_a_number_is_refused(graph: Graph, tmp_path: Path) -> None:
    (tmp_path / "y_labels.csv").write_text("a.bin,2,0,2560,512\n")
    np.full(640, np.nan, "<f4").tofile(tmp_path / "a.bin")
    with pytest.raises(InputError, match=r"ad01: input .* has 640 NaN"):
        load_windows(AD01, tmp_path, graph).samples.take(0, 1)


def test_an_output_of_another_size_is_refused() -> None:
    model = read_model(data_path("models", "kws_ref_model.tflite"))
    with pytest.raises(InputError, match=r"ad01 needs a model with an input of int8 or float32 \[1, 640\]"):
        load_windows(AD01, Path("."), model.main)

"""Stored numbers become what the reference models take, and float models get the real numbers behind them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.data import data_path
from tests.support.kws import clips, right
from tflq.benchmarks.accuracy import Accuracy, load_folder, measure
from tflq.benchmarks.scoring import load_data
from tflq.benchmarks.tasks import Quality, find_task
from tflq.converters.tflite import read_model
from tflq.errors import InputError
from tflq.graph import Affine
from tflq.oracle import Oracle
from tflq.parallel.executions import as_is

REFERENCES = {
    "kws01": "kws_ref_model",
    "vww01": "vww_96_int8",
    "ic01": "pretrainedResnet_quant",
    "sww01": "str_ww_ref_model",
}


@pytest.mark.parametrize("name", REFERENCES)
def test_the_real_numbers_are_those_of_the_reference_model(name: str) -> None:
    graph = read_model(data_path("models", f"{REFERENCES[name]}.tflite")).main
    quantization = graph.tensors[graph.inputs[0]].quantization
    task = find_task(name)
    assert isinstance(quantization, Affine)
    assert (quantization.scale == np.float32(task.scale)).all()
    assert quantization.zero_point.tolist() == [task.zero_point]


def test_the_float_model_on_the_keyword_clips(oracle: Oracle) -> None:
    path = data_path("models", "kws_ref_model_float32.tflite")
    samples, labels = clips(200)
    (outputs,) = oracle.run(path.read_bytes(), [samples], tensors="outputs").outputs
    model = read_model(path)
    data = load_data(find_task("kws01"), data_path("datasets", "kws01"), model.main, 200)
    assert (data.samples.take(0, 200)[0] == samples).all()
    found = measure(as_is(model), data)
    assert (found.right, found.total) == (right(outputs, labels), 200)


def test_images_for_a_float_model_are_as_stored(tmp_path: Path) -> None:
    (tmp_path / "y_labels.csv").write_text("a.bin,10,1\n")
    np.arange(3072, dtype=np.uint8).tofile(tmp_path / "a.bin")
    model = read_model(data_path("models", "pretrainedResnet.tflite"))
    (image,) = load_data(find_task("ic01"), tmp_path, model.main).samples.take(0, 1)
    assert image.dtype == np.float32
    assert (image.ravel() == np.arange(3072) % 256).all()


@pytest.fixture
def features() -> tuple[np.ndarray, np.ndarray]:
    """Features float64[45, 30, 1, 40] and classes of mlcommons' calibration samples of sww01."""
    with np.load(data_path("datasets", "sww01", "calibration_samples.npz")) as archive:
        return archive["specs"], archive["labels"].astype(int)


@pytest.mark.parametrize("stored", ["int8", "float32"])
def test_wake_words_from_feature_files(
    oracle: Oracle, tmp_path: Path, features: tuple[np.ndarray, np.ndarray], stored: str
) -> None:
    path = data_path("models", "str_ww_ref_model.tflite")
    real, labels = features
    scale, zero_point = np.float32(0.0037010426), -128
    codes = np.clip(np.round(real.astype(np.float32) / scale) + zero_point, -128, 127).astype(np.int8)
    lines = []
    for number, label in enumerate(labels):
        (codes if stored == "int8" else real)[number].astype(stored).tofile(tmp_path / f"{number}.bin")
        lines.append(f"{number}.bin,3,{label}\n")
    (tmp_path / "y_labels.csv").write_text("".join(lines))
    model = read_model(path)
    found = measure(as_is(model), load_data(find_task("sww01"), tmp_path, model.main))
    (outputs,) = oracle.run(path.read_bytes(), [codes[:, None]], tensors="outputs").outputs
    assert (found.right, found.total) == (right(outputs, labels), 45)
    assert found.right > 30
    for number in range(3):
        assert found.classes[number].total == (labels == number).sum()


def test_any_folder_holds_what_the_model_takes(tmp_path: Path) -> None:
    """kws01's files are its model's codes: without the task, the same figures."""
    model = read_model(data_path("models", "kws_ref_model.tflite"))
    folder = data_path("datasets", "kws01")
    by_task = measure(as_is(model), load_data(find_task("kws01"), folder, model.main, 100))
    data = load_data(None, folder, model.main, 100)
    assert measure(as_is(model), data) == by_task
    assert data.files[0].name == "tst_000000_Stop_7.bin"
    assert sum(c.right for c in by_task.classes) == by_task.right


def test_a_folder_of_another_model(tmp_path: Path) -> None:
    (tmp_path / "y_labels.csv").write_text("a.bin,12,1\n")
    (tmp_path / "a.bin").write_bytes(bytes(490))
    graph = read_model(data_path("models", "kws_ref_model_float32.tflite")).main
    with pytest.raises(InputError, match=r"a.bin: has 490 bytes; a sample has 1960 \(float32 1x49x10x1\)"):
        load_folder(tmp_path, graph)


def test_quality() -> None:
    kws = Accuracy("x", 900, 1000)
    assert kws.meets(Quality("top-1", 90.0))
    assert not Accuracy("x", 899, 1000).meets(Quality("top-1", 90.0))
    assert not kws.meets(Quality("auc", 0.85))
    assert [str(find_task(name).quality) for name in ("kws01", "ad01", "sww01")] == ["90 %", "AUC 0.85", "None"]

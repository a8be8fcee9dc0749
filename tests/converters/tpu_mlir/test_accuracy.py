"""Accuracy on the 1000 KWS clips: ranges from the quantized file, and calibrated on the first 100 clips."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from tests.support.data import data_path
from tflq.converters.calibration import calibrate
from tflq.converters.settings import parse_settings
from tflq.converters.tflite import read_model
from tflq.converters.tpu_mlir import TPU_MLIR
from tflq.graph import Array
from tflq.interpreter import Engine

CALIBRATION_CLIPS = 100


def clips() -> tuple[Array, Array]:
    """Return real inputs and labels."""
    folder = data_path("datasets", "kws01")
    with (folder / "y_labels.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    codes = np.stack([np.fromfile(folder / row[0].strip(), np.int8).reshape(1, 49, 10, 1) for row in rows])
    affine = read_model(data_path("models", "kws_ref_model.tflite")).main.tensors[0].affine
    real = (codes.astype(np.float64) - affine.zero_point[0]) * np.float64(affine.scale[0])
    return real.astype(np.float32), np.array([int(row[2]) for row in rows])


@pytest.mark.parametrize(
    ("name", "asymmetric", "expected"),
    [
        ("kws_ref_model", "false", 899),
        ("kws_ref_model", "true", 902),
        ("kws_ref_model_float32", "false", 901),
        ("kws_ref_model_float32", "true", 907),
    ],
)
def test_keywords(name: str, asymmetric: str, expected: int) -> None:
    graph = read_model(data_path("models", f"{name}.tflite")).main
    real, labels = clips()
    if name.endswith("float32"):
        graph = calibrate(graph, [real[:CALIBRATION_CLIPS]])
    quantized = TPU_MLIR.quantize(graph, parse_settings(TPU_MLIR.settings, [f"asymmetric={asymmetric}"]))
    output = Engine(quantized, "tpu_mlir").run([real])[quantized.outputs[0]]
    assert int((output.reshape(len(real), -1).argmax(axis=1) == labels).sum()) == expected

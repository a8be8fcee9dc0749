"""Ranges of the moving average against those that Arm China's Compass Optimizer calibrated."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from tests.support.data import data_files, data_path
from tflq.converters.calibration import StatisticsOptions, calibrate
from tflq.converters.tflite import read_model
from tflq.graph import Array, DType, Graph, GraphBuilder

# Compass sums convolutions in another order; a float32 result differs by a few units in the last place, and a moving
# average of ten batches passes that on. Inputs and all that moves or compares them are equal to the bit.
SUM_TOLERANCE = 2.0**-20


def kws_clips(count: int) -> Array:
    folder = data_path("datasets", "kws01")
    names = (folder / "y_labels.csv").read_text(encoding="utf-8").splitlines()[:count]
    codes = [np.fromfile(folder / line.split(",")[0].strip(), np.int8).reshape(1, 49, 10, 1) for line in names]
    return (np.stack(codes).astype(np.float32) - 83) * np.float32(0.5847029)


def ranges(graph: Graph) -> dict[str, tuple[float, float]]:
    return {t.name: (float(t.range.minimum[0]), float(t.range.maximum[0])) for t in graph.tensors if t.range}


def golden_ranges(path: Path) -> list[tuple[str, str, float, float]]:
    layers = json.loads(path.read_text(encoding="utf-8"))
    return [(layer["type"], out["name"], out["fmin"][0], out["fmax"][0]) for layer in layers for out in layer["outs"]]


@pytest.mark.parametrize("mode", ["sym_pt", "asym_pc"])
def test_keyword_spotting(mode: str) -> None:
    expected = golden_ranges(data_path("golden", "aipu", "kws_float32", mode, "layers.json"))
    graph = read_model(data_path("models", "kws_ref_model_float32.tflite")).main
    found = ranges(calibrate(graph, [kws_clips(100)], StatisticsOptions("mean", batch_size=10)))
    compared, equal = 0, 0
    for kind, name, low, high in expected:
        ours = found[name.removesuffix("_0")]
        compared, equal = compared + 1, equal + (ours == (low, high))
        if kind == "Input":
            assert ours == (low, high)
        assert ours == pytest.approx((low, high), rel=SUM_TOLERANCE), name
    assert compared == 14
    assert equal >= 7


@pytest.mark.parametrize(
    "case", [p.parent for p in data_files("golden", "aipu", "ops", pattern="calibration.npz")], ids=lambda p: p.name
)
def test_inputs_of_single_operators(case: Path) -> None:
    header = (case / f"{case.name}.txt").read_text(encoding="utf-8")
    order = re.findall(r"(?m)^input_tensors=\[(.*)\]$", header)[0].split(",")
    expected = {name: (low, high) for kind, name, low, high in golden_ranges(case / "asym" / "layers.json")}
    with np.load(case / "calibration.npz") as file:
        arrays = {key: file[key] for key in file.files}
    for i, name in enumerate(order):
        batches = [arrays[f"b{b}_in{i}"] for b in range(8)]
        if batches[0].dtype != np.float32:
            continue  # integers and booleans have no range of ours
        builder = GraphBuilder()
        graph = builder.build([builder.input("x", batches[0].shape, DType.FLOAT32)])
        found = calibrate(graph, [np.stack(batches)], StatisticsOptions("mean", batch_size=1))
        assert ranges(found)["x"] == expected[name.strip()]

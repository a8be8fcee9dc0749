"""Accuracy on the 1000 KWS clips, as the vendor published it and its tool reaches it."""

from __future__ import annotations

import csv
from functools import cache

import numpy as np
import pytest

from tests.support.data import data_path
from tests.support.gap9_golden import encoded, quantized
from tflq.converters.tflite import read_model
from tflq.graph import Array
from tflq.interpreter import Engine, lower

FIRST_ON_SQ8 = ["0:use_ne16=false"]


@cache
def clips() -> tuple[Array, Array]:
    folder = data_path("datasets", "kws01")
    with (folder / "y_labels.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    inputs = [np.fromfile(folder / row[0].strip(), np.int8).reshape(1, 49, 10, 1) for row in rows]
    return np.stack(inputs), np.array([int(row[2]) for row in rows])


def right(target: str, sets: list[str], layers: list[str]) -> int:
    model = read_model(data_path("models", "kws_ref_model.tflite"))
    codes, labels = clips()
    graph = lower(quantized(model, target, sets, layers), "gap9")
    output = Engine(graph).run([encoded(model, graph, codes, target)])[graph.outputs[0]]
    return int((output.reshape(len(codes), -1).argmax(axis=1) == labels).sum())


@pytest.mark.parametrize(("bits", "expected"), [(2, 94), (3, 631), (4, 843), (5, 900), (6, 900), (7, 901), (8, 901)])
def test_first_convolution_on_sq8(bits: int, expected: int) -> None:
    assert right("gap9-ne16", [f"weight_bits={bits}"], FIRST_ON_SQ8) == expected


@pytest.mark.parametrize(
    ("target", "sets", "expected"),
    [
        ("gap9-sq8", [], 898),
        ("gap9-ne16", [], 900),
        ("gap9-ne16", ["weight_bits=4"], 842),
        ("gap9-ne16", ["feature_bits=16"], 902),
    ],
)
def test_every_layer_on_one_engine(target: str, sets: list[str], expected: int) -> None:
    assert right(target, sets, []) == expected

"""Performance: five inputs, each for the time asked, and the median; what does not conform says so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.support.anomalies import write_anomalies
from tests.support.data import data_path
from tflq.benchmarks.performance import Performance, Window, time_inputs
from tflq.benchmarks.scoring import first_samples, load_data
from tflq.benchmarks.tasks import find_task
from tflq.converters.tflite import read_model
from tflq.errors import InputError
from tflq.parallel.executions import as_is


def ticks(step: float) -> Iterator[float]:
    now = 0.0
    while True:
        yield now
        now += step


def test_each_input_runs_until_its_time_is_over() -> None:
    model = read_model(data_path("models", "kws_ref_model.tflite"))
    data = load_data(find_task("kws01"), data_path("datasets", "kws01"), model.main, 8)
    counts: list[int] = []
    clock = ticks(0.25)
    found = time_inputs(as_is(model), data, 1.0, counts.append, lambda: next(clock))
    assert [window.file for window in found.windows] == [path.name for path in data.files[:5]]
    assert {(window.inferences, window.seconds) for window in found.windows} == {(3, 1.0)}
    assert (found.throughput, counts) == (3.0, [1] * 5)
    assert found.shortfall == "an input ran for 1 s; the rules require 10 s or more"


def test_the_median_of_five() -> None:
    windows = tuple(Window(f"{n}", n * n, 10.0) for n in (5, 1, 4, 2, 3))
    assert (Performance("x", windows).throughput, Performance("x", windows).shortfall) == (0.9, "")
    assert Performance("x", windows[:3]).shortfall == "3 inputs; the rules require 5"


def test_the_first_window_of_each_file_is_measured(tmp_path: Path) -> None:
    model = read_model(data_path("models", "ad01_int8.tflite"))
    folder = write_anomalies(tmp_path, 6)
    chosen = first_samples(load_data(find_task("ad01"), folder, model.main), 5)
    assert chosen.samples.count == 5
    starts = [np.fromfile(folder / f"{n}.bin", "<f4")[:640] for n in range(5)]
    expected = find_task("ad01").encode(np.stack(starts), model.main.tensors[model.main.inputs[0]])
    assert (chosen.samples.take(0, 5)[0] == expected).all()


def test_too_few_files(tmp_path: Path) -> None:
    model = read_model(data_path("models", "kws_ref_model.tflite"))
    data = load_data(find_task("kws01"), data_path("datasets", "kws01"), model.main, 4)
    with pytest.raises(InputError, match="performance is measured on 5 inputs; the data set has 4 files"):
        time_inputs(as_is(model), data, 0.1)

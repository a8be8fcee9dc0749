"""Accuracy on the keyword clips is what TFLite and GAP9's own tool reach; ties and encodings are as documented."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.data import data_path
from tests.support.tracked import ROOT
from tflq.api.demo import demo_model_path, demo_samples
from tflq.benchmarks.accuracy import load, measure, predictions
from tflq.benchmarks.scoring import load_data
from tflq.benchmarks.tasks import TASKS, find_task
from tflq.converters.settings import parse_settings
from tflq.converters.targets import find_target
from tflq.converters.tflite import read_model
from tflq.errors import InputError, OptionError
from tflq.graph import Model
from tflq.parallel.executions import as_is, for_target

FIRST_ON_SQ8 = ("0:use_ne16=false",)


@pytest.fixture(scope="module")
def keywords() -> Model:
    return read_model(data_path("models", "kws_ref_model.tflite"))


# Right answers of 1000: GreenWaves' published logs of its MLPerf Tiny v1.0 submission (docs/targets/gap9.md).
@pytest.mark.parametrize(
    ("target", "bits", "layers", "right"),
    [
        *(
            ("gap9-ne16", bits, FIRST_ON_SQ8, right)
            for bits, right in ((2, 94), (3, 631), (4, 843), (5, 900), (6, 900), (7, 901), (8, 901))
        ),
        ("gap9-ne16", 8, (), 900),
        ("gap9-ne16", 4, (), 842),
        ("gap9-sq8", 8, (), 898),
    ],
)
def test_gap9_on_the_keyword_clips(
    keywords: Model, target: str, bits: int, layers: tuple[str, ...], right: int
) -> None:
    found = find_target(target)
    execution = for_target(keywords.main, found, parse_settings(found.settings, [f"weight_bits={bits}"], layers))
    data = load(find_task("kws01"), data_path("datasets", "kws01"), keywords.main)
    assert measure(execution, data).right == right


def test_as_it_is_on_the_keyword_clips(keywords: Model) -> None:
    data = load(find_task("kws01"), data_path("datasets", "kws01"), keywords.main)
    counts: list[int] = []
    found = measure(as_is(keywords), data, counts.append)
    assert (found.right, found.total, found.percent, sum(counts)) == (901, 1000, 90.1, 1000)
    assert measure(replace(as_is(keywords), samples_at_a_time=37), data) == found


def test_ties_go_to_the_lowest_index() -> None:
    outputs = np.array([[[3, 7, 7]], [[-128, -128, -128]], [[0, 1, 2]]], np.int8)
    assert predictions(outputs).tolist() == [1, 0, 2]


def test_the_automobile_is_one(tmp_path: Path) -> None:
    planes = np.fromfile(data_path("datasets", "ic01", "taxi_s_001241_chw.bin"), np.uint8).reshape(3, 32, 32)
    planes.transpose(1, 2, 0).tofile(tmp_path / "taxi_s_001241.bin")
    (tmp_path / "y_labels.csv").write_text("taxi_s_001241.bin,10,1\n")
    model = read_model(data_path("models", "pretrainedResnet_quant.tflite"))
    data = load(find_task("ic01"), tmp_path, model.main)
    (codes,) = data.samples.take(0, 1)
    assert codes.dtype == np.int8
    assert codes.shape == (1, 1, 32, 32, 3)
    assert codes[0, 0, 5, 7, 1] == int(planes[1, 5, 7]) - 128
    assert measure(as_is(model), data).right == 1


@pytest.mark.parametrize("name", TASKS)
def test_other_models_are_refused(name: str) -> None:
    graph = read_model(ROOT / "tflq" / "data" / "digits.tflite").main
    with pytest.raises(InputError, match=f"{name} needs a model with an input of int8 or float32 "):
        load_data(find_task(name), Path("."), graph)


def test_anomalies_have_no_accuracy() -> None:
    graph = read_model(data_path("models", "ad01_int8.tflite")).main
    with pytest.raises(InputError, match="ad01 has no classes: `tflq bench ad01` measures"):
        load(find_task("ad01"), Path("."), graph)


def test_unknown_task() -> None:
    with pytest.raises(OptionError, match="no task is called 'kws'; there are kws01, vww01, ic01"):
        find_task("kws")


def test_demo_data() -> None:
    model = read_model(demo_model_path())
    data = demo_samples(model.main)
    assert (data.samples.count, data.classes, len(data.labels)) == (360, 10, 360)
    assert measure(as_is(model), data).percent > 95

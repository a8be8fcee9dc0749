"""Results in mlcommons' layout are read by the patterns of its submission checker, and say what was simulated."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.anomalies import write_anomalies
from tests.support.data import data_path
from tflq.benchmarks.performance import Performance, Window
from tflq.benchmarks.results_layout import System, write_accuracy, write_performance
from tflq.benchmarks.scoring import load_data, run_data, score
from tflq.benchmarks.tasks import find_task
from tflq.converters.tflite import read_model
from tflq.parallel.executions import as_is

# tools/submission/submission_checker.py of mlcommons/tiny
TOP_1 = r".* Top[- ]1%?\s?[:=] ([\d\.]+).*"
AUC = r".* AUC\s?[:=] ([\d\.]+).*"
MEDIAN = r".* Median throughput is\s+([\d\.]+) inf\./sec\..*"
FILES = {"log.txt", "results.json", "results.txt"}
SYSTEM = System("tflq as is", False, "tflq 1.0", "as is")


def stated(folder: Path, pattern: str) -> list[str]:
    assert {path.name for path in folder.iterdir()} == FILES
    lines = (folder / "results.txt").read_text().splitlines()
    return [match.group(1) for line in lines if (match := re.match(pattern, line))]


def test_accuracy(tmp_path: Path) -> None:
    task, model = find_task("kws01"), read_model(data_path("models", "kws_ref_model.tflite"))
    data = load_data(task, data_path("datasets", "kws01"), model.main, 30)
    values = run_data(as_is(model), data)
    found = score("x", values, data)
    where = write_accuracy(tmp_path, SYSTEM, task, data, found, values)
    assert where == tmp_path / "results" / "tflq-as-is" / "kws" / "accuracy"
    assert stated(where, TOP_1) == [f"{found.percent:.1f}"]
    assert stated(where, AUC) == [f"{found.auc:.3f}"]
    records = json.loads((where / "results.json").read_text())
    assert [record["file"] for record in records] == [path.name for path in data.files]
    assert records[0]["infer"]["results"] == [0.0] * 7 + [0.996] + [0.0] * 4
    system = json.loads((tmp_path / "systems" / "tflq-as-is.json").read_text())
    assert system["Status"].lower() in ("available", "preview", "rdi")
    for text in ((where / "results.txt").read_text(), (where / "log.txt").read_text(), json.dumps(system)):
        assert "simulation" in text


def test_anomalies_state_their_area_alone(tmp_path: Path) -> None:
    task, model = find_task("ad01"), read_model(data_path("models", "ad01_int8.tflite"))
    (tmp_path / "data").mkdir()
    data = load_data(task, write_anomalies(tmp_path / "data", 4), model.main)
    values = run_data(as_is(model), data)
    found = score("x", values, data)
    where = write_accuracy(tmp_path, SYSTEM, task, data, found, values)
    assert (stated(where, AUC), stated(where, TOP_1)) == ([f"{found.auc:.3f}"], [])
    assert len(json.loads((where / "results.json").read_text())) == 48


@pytest.mark.parametrize(
    ("seconds", "remark"), [(10.5, ""), (0.5, "Not conforming: an input ran for 0.5 s; the rules require 10 s or more")]
)
def test_performance_beside_accuracy(tmp_path: Path, seconds: float, remark: str) -> None:
    found = Performance("x", tuple(Window(f"{n}.bin", 100 * n, seconds) for n in range(1, 6)))
    where = write_performance(tmp_path, SYSTEM, find_task("kws01"), found)
    write_performance(tmp_path, System("Board 7 (rev. B)", True, "tflq 1.0", ""), find_task("ad01"), found, ["line"])
    assert stated(where, MEDIAN) == [f"{300 / seconds:.3f}"]
    text = (where / "results.txt").read_text()
    assert text.count("Runtime requirements have been met.") == (0 if remark else 5)
    assert remark in text
    board = tmp_path / "results" / "Board-7-rev.-B" / "ad" / "performance"
    assert "simulation" not in (board / "results.txt").read_text()
    assert (board / "log.txt").read_text().endswith("\nline\n")
    assert {path.name for path in (tmp_path / "systems").iterdir()} == {"tflq-as-is.json", "Board-7-rev.-B.json"}

"""`--metric` of search and sensitivity: what judges, in which direction, and what is said of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Outcome, tflq
from tests.support.digits_problem import write_labeled
from tflq.api.demo import demo_model_path

MODEL = demo_model_path()
PINNED = (0, 1, 4, 5)
SMALL = (
    *(word for n in PINNED for word in ("--layer", f"{n}:weight_bits=8")),
    "--widths",
    "2,3,8",
    "--take",
    "0:20",
)
OWN = """
import numpy as np

def errors(outputs, labels):
    return np.count_nonzero(outputs.argmax(axis=1) != labels)

errors.is_lower_better = True

def right(outputs, labels):
    return len(labels) - errors(outputs, labels)

def broken(outputs, labels):
    raise ValueError("no")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_labeled(tmp_path_factory.mktemp("digits"), 40)
    (folder / "own.py").write_text(OWN)
    return folder


@pytest.fixture(scope="module")
def accurate(folder: Path) -> dict[str, Any]:
    """What the accuracy alone chooses."""
    found: dict[str, Any] = run(folder, "search", "--at-least", 95, "--json").json
    return found


def run(folder: Path, command: str, *arguments: object, jobs: int = 1) -> Outcome:
    return tflq(command, MODEL, "-t", "gap9-ne16", *SMALL, "-j", jobs, "-d", ".", *arguments, cwd=folder)


def test_fewer_errors_choose_what_more_right_answers_do(folder: Path, accurate: dict[str, Any]) -> None:
    """One error of 20 is 95 %: the same settings are tried, and the same one is chosen, in two processes."""
    fewer = run(folder, "search", "--metric", "own.py:errors", "--at-most", 1, "--json", jobs=2).json
    more = run(folder, "search", "--metric", "own.py:right", "--at-least", 19, "--json").json
    assert fewer["required"] == {
        "metric": "own.py:errors",
        "accuracy_percent": None,
        "sqnr_db": None,
        "score": 1.0,
        "is_lower_better": True,
    }
    for found, of in ((fewer, lambda right: 20 - right), (more, lambda right: right)):
        assert [p["score"] for p in found["points"]] == [of(p["right"]) for p in accurate["points"]]
        assert [p["pareto"] for p in found["points"]] == [p["pareto"] for p in accurate["points"]]
        assert found["chosen"]["bits"] == accurate["chosen"]["bits"]
        assert found["chosen"]["right"] is found["chosen"]["interval_percent"] is None
        assert (found["paired"], found["required_within_interval"]) == ([], False)
    assert accurate["paired"]


def test_words_page_and_kept_results(folder: Path, tmp_path: Path) -> None:
    page, results = tmp_path / "p.html", tmp_path / "r"
    arguments = ("search", "--metric", "own.py:errors", "--at-most", 1, "--verify", "20:40", "--results", results)
    first = run(folder, *arguments, "--report", page).out
    assert "reference own.py:errors of at most 1, 20 samples" in first.splitlines()[0]
    assert "bytes   own.py:errors   SQNR, dB" in first
    assert re.search("of weights, own.py:errors [01], SQNR", first)
    assert "95 % interval" not in first
    assert "McNemar" not in first
    assert "own.py:errors of at most 1" in page.read_text()
    again = run(folder, *arguments).out
    settings = "stored earlier"
    assert [a for a in again.splitlines() if settings not in a] == [a for a in first.splitlines() if settings not in a]
    assert "0 of them stored earlier" in first
    assert "0 of them stored earlier" not in again


def test_a_share_of_right_answers_keeps_its_intervals(folder: Path, accurate: dict[str, Any]) -> None:
    found = run(folder, "search", "--metric", "top-2", "--at-least", 95, "--json").json
    assert found["required"] == {"metric": "top-2", "accuracy_percent": 95.0, "sqnr_db": None}
    assert found["chosen"]["accuracy_percent"] >= 95
    right = {tuple(p["bits"]): p["right"] for p in accurate["points"]}
    both = [(p["right"], right[tuple(p["bits"])]) for p in found["points"] if tuple(p["bits"]) in right]
    assert all(second >= first for second, first in both)
    assert any(second > first for second, first in both)
    assert found["paired"]


def test_sensitivity(folder: Path, tmp_path: Path) -> None:
    arguments = ("sensitivity", "--metric", "own.py:errors")
    kept = ("--results", tmp_path / "r")
    found, accurate = run(folder, *arguments, *kept, "--json").json, run(folder, "sensitivity", "--json").json
    assert (found["metric"], accurate["metric"]) == ("own.py:errors", "top-1")
    for mine, other in zip(found["layers"], accurate["layers"], strict=True):
        for bits, result in mine["results"].items():
            assert result["score"] == 20 - other["results"][bits]["right"]
    assert "own.py:errors" in run(folder, *arguments, *kept).out


def test_backward(folder: Path) -> None:
    """A drop of two errors of 40 is one of 5 points."""
    arguments = ("search", MODEL, "--backward", "-t", "aipu", "-d", ".", "--json")
    found = tflq(*arguments, "--metric", "own.py:errors", "--drop", 2, cwd=folder).json
    accurate = tflq(*arguments, "--drop", 5, cwd=folder).json
    assert (found["metric"], accurate["metric"]) == ("own.py:errors", "top-1")
    assert (found["first"], found["stage"]) == (accurate["first"], accurate["stage"])
    assert [t["score"] for t in found["tried"]] == [round(40 - 0.4 * t["score"]) for t in accurate["tried"]]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--metric", "own.py:errors", "--at-least", 1), "own.py:errors is better if lower; use --at-most"),
        (("--at-most", 1), "top-1 is better if higher; use --at-least"),
        (("--metric", "top-2", "--min-sqnr", 9), "--metric top-2: the bound is missing; set it with --at-least"),
        (("--metric", "top-2", "--at-least", 0.9), "--at-least 0.9 is 0.9 %; write 90"),
        (("--metric", "top-2", "--at-least", 101), "--at-least 101: top-2 is 0..100 %"),
        (("--metric", "f1", "--at-least", 1), "no metric is called 'f1'"),
        (("--metric", "own.py:broken", "--at-least", 1), "metric own.py:broken failed: ValueError: no"),
        (("--metric", "sqnr", "--backward"), "sqnr compares with floating point and is infinite for the float model"),
    ],
)
def test_refused(folder: Path, arguments: tuple[object, ...], words: str) -> None:
    if "--backward" in arguments:
        assert words in tflq("search", MODEL, "-t", "aipu", "-d", ".", *arguments, cwd=folder).refused()
    else:
        assert words in run(folder, "search", *arguments).refused()


def test_a_metric_needs_labels_and_a_drop_in_its_unit(folder: Path) -> None:
    command = ("search", MODEL, "-t", "aipu", "--backward", "--metric")
    assert "--metric needs labels" in tflq(*command, "top-2").refused()
    line = tflq(*command, "own.py:errors", "-d", ".", cwd=folder).refused()
    assert "--metric own.py:errors: the allowed drop is missing; set it with --drop" in line

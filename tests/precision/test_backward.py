"""Backward search: what it tries, what it chooses, and the command."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.digits_problem import write_labeled
from tests.support.tracked import ROOT
from tflq.benchmarks.accuracy import measure
from tflq.benchmarks.scoring import load_named
from tflq.cli import main
from tflq.converters.precision import Promotion
from tflq.converters.targets import find_promotable
from tflq.converters.tflite import read_model
from tflq.errors import OptionError
from tflq.parallel.executions import in_float
from tflq.precision.backward import Backward, BackwardSearch, Rules
from tflq.precision.strategy import follow

DIGITS = ROOT / "tflq" / "data" / "digits.tflite"
PROMOTIONS = (Promotion("wide", "bits=16"), Promotion("float", "float=true"))


def _first(rules: tuple[str, ...], layers: int) -> tuple[int, str]:
    """Take a rule apart: the first promoted layer, and how."""
    if not rules:
        return layers, ""
    (rule,) = rules
    span, _, values = rule.partition(":")
    first, _, last = span.partition("-")
    assert int(last) == layers - 1
    return int(first), values


def _follow(layers: int, score: Callable[[Rules], float], drop: float) -> BackwardSearch:
    return follow(Backward(layers, PROMOTIONS, 1.0, drop), lambda _, settings: [score(rules) for rules in settings])


def _search(layers: int, wide: int, floating: int, drop: float = 0.1) -> tuple[BackwardSearch, list[tuple[int, str]]]:
    """Search a network whose score is 1 with layers from `wide` (or `floating`) on raised, else 0.5; -1 is never."""
    asked: list[tuple[int, str]] = []

    def score(rules: tuple[str, ...]) -> float:
        first, values = _first(rules, layers)
        asked.append((first, values))
        needed = floating if values == "float=true" else wide
        return 1.0 if first <= needed else 0.5

    return _follow(layers, score, drop), asked


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))))
def test_the_last_layer_that_is_enough(case: tuple[int, int]) -> None:
    layers, wanted = case
    found, asked = _search(layers, wanted, -1)
    assert found.chosen is not None
    assert (found.chosen.first, found.chosen.score) == (wanted, 1.0)
    assert len(asked) == len(set(asked)) <= layers.bit_length() + 2
    assert [(t.first, t.stage) for t in found.tried] == [(f, "wide" if v else "none") for f, v in asked]
    assert found.rules == (() if wanted == layers else (f"{wanted}-{layers - 1}:bits=16",))


@given(st.integers(1, 50).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 1))))
def test_the_second_stage_where_the_first_is_not_enough(case: tuple[int, int]) -> None:
    layers, wanted = case
    found, asked = _search(layers, -1, wanted)
    assert found.rules == (f"{wanted}-{layers - 1}:float=true",)
    assert asked[:3] == [(layers, ""), (0, "bits=16"), (0, "float=true")]


def test_nothing_is_enough() -> None:
    found, _ = _search(8, -1, -1)
    assert (found.chosen, found.rules) == (None, ())
    assert (found.best.first, found.best.score) == (8, 0.5)


def test_a_score_that_jumps_about_keeps_its_promise() -> None:
    """Layers from 0, 2 or 5 on are enough, from 3 and 4 not: one that was tried and is enough is chosen."""
    good = {0, 2, 5}
    found = _follow(8, lambda r: 1.0 if _first(r, 8)[0] in good else 0.0, 0.1)
    assert found.chosen is not None
    assert found.chosen.first in good


def test_targets_without_promotions_are_refused() -> None:
    with pytest.raises(OptionError, match="target nnie: its layers are not promotable; allowed is aipu"):
        find_promotable("nnie")


def _tune(folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, dict[str, object]]:
    count = [] if "--data" in options else ["-n", "8"]
    status = main(["tune", str(DIGITS), *count, "--json", *options])
    report: dict[str, object] = json.loads(capsys.readouterr().out)
    return status, report


def test_the_command_writes_a_template_that_converts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    template = str(tmp_path / "t.json")
    status, report = _tune(tmp_path, capsys, "--drop", "0.0001", "--write-template", template)
    assert (status, report["stage"], report["reference"]) == (0, "16 bits", 1.0)
    assert main(["convert", str(DIGITS), "-t", "aipu", "-o", str(tmp_path / "out"), "--template", template]) == 0
    content = json.loads(Path(template).read_text(encoding="utf-8"))
    bits = [layer["settings"]["activation_bits"] for layer in content["layers"]]
    first = report["first"]
    assert isinstance(first, int)
    assert bits == [8] * first + [16] * (10 - first)


def test_the_command_without_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, report = _tune(tmp_path, capsys, "--drop", "0", "--write-template", str(tmp_path / "t.json"))
    assert (status, report["first"]) == (1, None)
    assert list(tmp_path.iterdir()) == []
    assert main(["tune", str(DIGITS), "-n", "8", "--drop", "0"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("FAIL: ")
    assert "at most 0 below 1.000000" in out


def test_the_command_where_nothing_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", str(DIGITS), "-n", "8", "--drop", "0.5"]) == 0
    assert "no layer needs more" in capsys.readouterr().out


def test_accuracy_as_the_score(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In percent, here on the package's own digits."""
    folder = str(write_labeled(tmp_path, 60))
    status, report = _tune(Path(), capsys, "--drop", "5", "--data", folder)
    model = read_model(DIGITS)
    reference = measure(in_float(model), load_named(folder, model.main))
    assert (status, report["reference"]) == (0, reference.percent)
    tried = report["tried"]
    assert isinstance(tried, list)
    assert len(tried) == 1
    assert abs(tried[0]["score"] - reference.percent) <= 5

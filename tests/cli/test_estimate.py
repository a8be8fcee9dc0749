"""`tflq estimate`: no number leaves the command without its grade and its error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import tflq, without_run
from tests.support.faults import DIGITS
from tests.support.html_page import read_page

GRADES = ("exact", "fitted", "single case", "lower bound", "not offered")


def bare(value: Any, path: str = "") -> Iterator[str]:
    """The numbers of a report that stand outside a figure; a figure has value, unit, grade, low, high, basis."""
    if isinstance(value, dict) and {"value", "grade"} <= set(value):
        assert list(value) == ["value", "unit", "grade", "low", "high", "basis"]
        assert value["grade"] in GRADES
        assert value["basis"]
        assert (value["value"] is None) == (value["grade"] == "not offered")
        if value["grade"] not in ("not offered", "lower bound"):
            assert value["low"] <= value["value"] <= value["high"]
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from bare(item, f"{path}/{key}")
    elif isinstance(value, list):
        for item in value:
            yield from bare(item, path)
    elif isinstance(value, (int, float)) and not path.endswith(("/index", "/schema", "/verdict/number")):
        yield path


@pytest.mark.parametrize("target", ["gap9-ne16", "tpu-mlir"])
def test_every_number_carries_its_grade(target: str) -> None:
    done = tflq("estimate", DIGITS, "--target", target, "--json")
    assert done.status == 0
    assert list(bare(without_run(done.json))) == []


def test_no_printed_number_is_bare() -> None:
    text = tflq("estimate", DIGITS, "--target", "gap9-ne16").out
    figures, _, _ = text.partition("L1: ")
    assert len(re.findall(r"[\d.,]+ (?:us|uJ|MACs|bytes) \((?:exact|fitted|single case|lower bound)", figures)) > 10
    assert re.findall(r"[\d.,]+ (?:us|uJ|bytes) (?!\((?:exact|fitted|single case|lower bound))", figures) == []


def test_the_lower_bound_is_the_headline_of_a_network_without_a_total(tmp_path: Path) -> None:
    """No cycles of a max pool on GAP9's cluster are published."""
    arguments = ("estimate", DIGITS, "-t", "gap9-ne16")
    first = tflq(*arguments, "--report", tmp_path / "page.html").out.splitlines()[0]
    totals = tflq(*arguments, "--json").json["totals"]
    least = totals["cycles, at least"]
    assert least["grade"] == "lower bound"
    layers = "2 of 15 layers without published cycles: MAX_POOL_2D_0_3, AVERAGE_POOL_2D_0_6"
    assert first == f"{round(least['value'])} cycles or more (lower bound), no total; {layers}"
    assert read_page(tmp_path / "page.html").verdict == first
    assert totals["time at 0.80 V, 370 MHz"]["grade"] == "lower bound"


def test_page_and_refusals(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert tflq("estimate", DIGITS, "-t", "gap9-ne16", "--report", page).status == 0
    assert '<span class="bar" style="width: 100.0%">' in page.read_text(encoding="utf-8")
    assert "unknown target" in tflq("estimate", DIGITS, "-t", "ethos").refused()
    assert "weight_bits" in tflq("estimate", DIGITS, "-t", "gap9-ne16", "-s", "weight_bits=9").refused()

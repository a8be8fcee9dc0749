"""`tflq.compare`: what the command prints, from Python."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tflq
from tests.support.command import facts_text
from tests.support.command import tflq as command
from tests.support.tracked import ROOT
from tflq.errors import UsageError

DIGITS = ROOT / "tflq" / "data" / "digits.tflite"


def test_result_is_what_json_prints() -> None:
    found = tflq.compare(f"{DIGITS}@gap9-ne16", "@float", tflq.SampleOptions(count=5), tolerance=1.0)
    done = command("compare", f"{DIGITS}@gap9-ne16", "@float", "-n", 5, "--tolerance", 1, "--json")
    assert not found.is_equal
    assert facts_text(found.to_dict()) == done.facts


def test_models_and_arrays_are_sides_and_samples() -> None:
    model = tflq.read_model(DIGITS)
    images = np.random.default_rng(3).integers(-128, 128, (4, 8, 8, 1), np.int8)
    found = tflq.compare(model, DIGITS, images)
    assert found.is_equal
    assert found.comparison.samples == 4
    assert {row["differing"] for row in found.rows()} == {0}


def test_a_page_and_node_data(tmp_path: Path) -> None:
    found = tflq.compare(DIGITS, samples=tflq.SampleOptions(count=2))
    assert found.verdict.text in command("compare", DIGITS, "-n", 2).out
    assert str(DIGITS) in (found._repr_html_() or "")
    found.write_node_data(tmp_path / "nodes.json")
    assert "main" in json.loads((tmp_path / "nodes.json").read_text(encoding="utf-8"))


def test_options_that_contradict_each_other() -> None:
    with pytest.raises(UsageError, match="add target"):
        tflq.compare(DIGITS, target=tflq.TargetOptions(settings=("weight_bits=4",)))
    with pytest.raises(UsageError, match="nonsense"):
        tflq.compare(DIGITS, nonsense=1)

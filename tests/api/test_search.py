"""`tflq.sensitivity` and `tflq.search`, both strategies: what the commands print and write, from Python."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tflq
from tests.support.command import facts_text
from tests.support.command import tflq as command
from tests.support.tracked import ROOT
from tflq.errors import OptionError, UsageError

DIGITS = ROOT / "tflq" / "data" / "digits.tflite"
PINNED = ("0:weight_bits=8", "1:weight_bits=8", "4:weight_bits=8")
FLAGS = ("-t", "gap9-ne16", *(word for rule in PINNED for word in ("-l", rule)), "--widths", "3,8", "-j", 1, "--json")
NE16 = tflq.TargetOptions("gap9-ne16", layers=PINNED)


def images() -> np.ndarray:
    return np.random.default_rng(1).integers(-128, 128, (20, 8, 8, 1), np.int8)


def text(found: tflq.SearchResult | tflq.SensitivityResult | tflq.BackwardResult) -> str:
    return facts_text(found.to_dict())


def test_sensitivity_is_what_the_command_prints(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", images())
    found = tflq.sensitivity(str(DIGITS), NE16, images(), widths=(3, 8), spared=True)
    done = command("sensitivity", DIGITS, *FLAGS, "--spared", "-i", tmp_path / "x.npy")
    assert text(found) == done.facts
    assert {bits for row in found.rows() for bits in row["results"]} == {"3"}
    assert "SQNR" in (found._repr_html_() or "")


def test_search_is_what_the_command_prints_and_writes(tmp_path: Path) -> None:
    found = tflq.search(str(DIGITS), NE16, min_sqnr=15.0, widths=(3, 8))
    done = command("search", DIGITS, *FLAGS, "--min-sqnr", 15, "-o", tmp_path / "a.json")
    assert text(found) == done.facts
    found.write_settings(tmp_path / "b.json")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert found.is_kept
    converted = tflq.convert(DIGITS, tflq.TargetOptions("gap9-ne16", layers=found.layers), samples=images())
    assert converted.artifacts == tflq.convert(DIGITS, settings(tmp_path / "a.json"), samples=images()).artifacts


def settings(path: Path) -> tflq.TargetOptions:
    return tflq.TargetOptions("gap9-ne16", file=str(path))


def test_a_backward_search_is_what_tune_prints_and_writes(tmp_path: Path) -> None:
    found = tflq.search(str(DIGITS), "aipu", tflq.SampleOptions(count=8), options=tflq.BackwardOptions(drop=0.0001))
    tuned = command("tune", DIGITS, "-n", 8, "--drop", 0.0001, "--write-template", tmp_path / "a.json", "--json")
    arguments = ("-t", "aipu", "--backward", "-n", 8, "--drop", 0.0001, "--write-template", tmp_path / "b.json")
    searched = command("search", DIGITS, *arguments, "--json")
    assert text(found) == tuned.facts == searched.facts
    assert (tuned.err, searched.err) == ("tflq: tune is an alias of `tflq search --backward`\n", "")
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_options_of_the_other_strategy() -> None:
    done = command("search", DIGITS, "-t", "aipu", "--backward", "--min-sqnr", 3, "--slack", 1)
    assert (done.status, done.err) == (2, "tflq: --min-sqnr cannot be used with --backward; see tflq search --help\n")
    done = command("search", DIGITS, "-t", "aipu", "--min-sqnr", 3, "--drop", 1)
    assert (done.status, done.err) == (2, "tflq: --drop needs --backward; see tflq search --help\n")
    with pytest.raises(UsageError, match="the requirement is missing"):
        tflq.search(DIGITS, NE16)
    with pytest.raises(OptionError, match="not promotable"):
        tflq.search(DIGITS, "nnie", options=tflq.BackwardOptions())

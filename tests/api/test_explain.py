"""`tflq.explain`: what the command prints, from Python."""

from __future__ import annotations

import json

import pytest

import tflq
from tests.support.command import tflq as command
from tests.support.tracked import ROOT
from tflq.errors import UsageError

DIGITS = str(ROOT / "tflq" / "data" / "digits.tflite")
PLACE = ("CONV_2D_0_2", (0, 1, 1, 1))
FLAGS = ("--tensor", "CONV_2D_0_2", "--index", "0,1,1,1", "--json")


def test_result_is_what_json_prints() -> None:
    found = tflq.explain(DIGITS, *PLACE, sample=2)
    assert json.dumps(found.to_dict(), indent=2, ensure_ascii=False) == command(
        "explain", DIGITS, *FLAGS, "--sample", 2
    ).out.removesuffix("\n")
    assert found.rows()[-1]["value"] == found.explanation.stored
    assert found.is_equal


def test_two_computations() -> None:
    found = tflq.explain(tflq.read_model(DIGITS), *PLACE, target=tflq.TargetOptions("nnie"), against="@float")
    done = command("explain", DIGITS, *FLAGS, "-t", "nnie", "--against", "@float")
    assert json.dumps(found.to_dict(), indent=2, ensure_ascii=False) == done.out.removesuffix("\n")
    assert done.status == int(not found.is_equal)


def test_what_contradicts_itself() -> None:
    with pytest.raises(UsageError, match="add --target"):
        tflq.explain(DIGITS, *PLACE, target=tflq.TargetOptions(settings=("weight_bits=4",)))
    with pytest.raises(UsageError, match="brings its own arithmetic"):
        tflq.explain(DIGITS, *PLACE, target=tflq.TargetOptions("nnie"), arithmetic="tflite")

"""`tflq.bench`: what the command prints and writes, from Python."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tflq
from tests.support.command import facts_text
from tests.support.command import tflq as command
from tests.support.tracked import ROOT
from tflq.errors import UsageError

DIGITS = ROOT / "tflq" / "data" / "digits.tflite"


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("digits")
    with np.load(ROOT / "tflq" / "data" / "digits_test.npz") as file:
        images, labels = file["images"][:30], file["labels"][:30]
    for number, image in enumerate(images):
        (folder / f"{number:02}.bin").write_bytes(image.tobytes())
    (folder / "y_labels.csv").write_text("".join(f"{n:02}.bin,10,{c}\n" for n, c in enumerate(labels)))
    return folder


def test_result_is_what_json_prints(digits: Path) -> None:
    target = tflq.TargetOptions(settings=("weight_bits=3",))
    found = tflq.bench(str(DIGITS), digits, targets=("gap9-ne16",), target=target, take=tflq.Span(0, 20), at_least=99.9)
    flags = ("--take", 20, "-t", "gap9-ne16", "-s", "weight_bits=3", "--at-least", 99.9)
    done = command("bench", "-m", DIGITS, "-d", digits, *flags, "--json")
    assert facts_text(found.to_dict()) == done.facts
    assert (done.status == 0) is found.is_kept
    assert [row["name"] for row in found.rows()] == ["as is", "gap9-ne16"]
    assert "gap9-ne16" in (found._repr_html_() or "")


def test_every_target_and_what_contradicts_it(digits: Path) -> None:
    with pytest.raises(UsageError, match="target all includes every target"):
        tflq.bench(DIGITS, digits, targets=("all", "nnie"))
    with pytest.raises(UsageError, match="board needs TASK"):
        tflq.bench(DIGITS, digits, board=tflq.Board("/dev/null"))
    with pytest.raises(UsageError, match="seconds needs mode performance"):
        tflq.bench(DIGITS, digits, seconds=1.0)


def test_performance(digits: Path) -> None:
    found = tflq.bench(DIGITS, digits, mode="performance", seconds=0.001)
    assert found.rows()[0]["conforms"] is False
    assert found.is_kept

"""The notebooks run with the model inside the package and print the text that they store."""

from __future__ import annotations

import subprocess
import sys

from tests.support.tracked import ROOT

NOTEBOOKS = ROOT / "docs" / "notebooks"


def test_the_notebooks_are_not_stale() -> None:
    command = [sys.executable, ROOT / "scripts" / "notebooks"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), f"{done.stdout}{done.stderr}: scripts/notebooks --write"


def test_the_notebook_finds_the_planted_fault() -> None:
    """The dump has the bias of channel 20 of the third layer set to 0."""
    text = (NOTEBOOKS / "find_the_wrong_layer.ipynb").read_text(encoding="utf-8")
    assert "CONV_2D_0_2 channel 20" in text

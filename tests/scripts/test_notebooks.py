"""The notebooks run with the model inside the package and print the text that they store."""

from __future__ import annotations

import subprocess
import sys

from tests.support.tracked import ROOT


def test_the_notebooks_are_not_stale() -> None:
    command = [sys.executable, ROOT / "scripts" / "notebooks"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), f"{done.stdout}{done.stderr}: scripts/notebooks --write"

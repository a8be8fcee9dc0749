"""The worked layers at the top of the targets' pages are what `tflq explain` prints today."""

from __future__ import annotations

import subprocess
import sys

from tests.support.tracked import ROOT


def test_the_pages_are_not_stale() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "worked_layers"], env=None, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, ""), f"{done.stdout}{done.stderr}: scripts/worked_layers --write"

"""The table of docs/guides/estimate.md is what `tflq estimate` says today."""

from __future__ import annotations

import subprocess
import sys

from tests.support.data import data_path
from tests.support.tracked import ROOT


def test_the_table_is_not_stale() -> None:
    data_path("cases", "ne16", "published_gap9.json")
    command = [sys.executable, ROOT / "scripts" / "gap9_estimates"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), f"{done.stderr}: scripts/gap9_estimates --write"

"""The worked layers and tables that scripts/worked_layers writes are up to date."""

from __future__ import annotations

import subprocess
import sys

from tests.support.tracked import ROOT


def test_the_pages_are_not_stale() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "worked_layers"], env=None, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, ""), f"{done.stdout}{done.stderr}: scripts/worked_layers --write"


def test_the_first_rewrite_is_the_tools() -> None:
    """TPU-MLIR removes idle moves before all others (sweep `moves` of scripts/peer tpu-mlir)."""
    page = (ROOT / "docs" / "rules" / "tpu_mlir_front_end.md").read_text(encoding="utf-8")
    rows = [line.split(" | ")[:3] for line in page.splitlines() if line.startswith("| 1 |")]
    text = "a reshape to the same shape and a transposition that keeps the order are removed"
    assert rows == [["| 1", "`remove_idle_moves`", text]]

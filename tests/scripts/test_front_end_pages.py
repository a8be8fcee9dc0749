"""The page of TPU-MLIR's front end has the table of rewrites that runs."""

from __future__ import annotations

import subprocess
import sys

from tests.support.tracked import ROOT


def test_the_page_is_up_to_date() -> None:
    command = [sys.executable, ROOT / "scripts" / "front_end_pages", "--check"]
    done = subprocess.run(command, env=None, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), f"{done.stdout}{done.stderr}"

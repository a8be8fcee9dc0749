"""The run's summary counts the skipped tests by reason."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.tracked import ROOT

SOURCE = """
import pytest
@pytest.mark.parametrize("number", range(3))
def test_model(number): pytest.skip("no models")
@pytest.mark.skip(reason="no board")
def test_board(): pass
def test_sum(): assert 1 + 1 == 2
"""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_reasons_are_counted(tmp_path: Path, workers: str) -> None:
    (tmp_path / "test_example.py").write_text(SOURCE)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-p", "tests.support.skips", "-n", workers, str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stdout + done.stderr
    assert lines.index("3 no models") < lines.index("1 no board") < len(lines) - 1
    assert "1 passed, 4 skipped" in lines[-1]

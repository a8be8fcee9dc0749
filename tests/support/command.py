"""Runs the command line in a process of its own, as a user does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.tracked import ROOT


@dataclass(frozen=True)
class Outcome:
    """Exit status and what was printed."""

    status: int
    out: str
    err: str

    @property
    def facts(self) -> str:
        """The report of --json without what was run, as `facts_text` writes one."""
        return facts_text(self.json)

    @property
    def json(self) -> Any:
        """The report of --json."""
        return json.loads(self.out)

    def refused(self) -> str:
        """Check that the command refused its input in one line on standard error, and return that line."""
        assert self.status == 2, (self.status, self.out, self.err)
        assert self.out == ""
        assert self.err.startswith("tflq: ")
        assert self.err.count("\n") == 1, self.err
        assert self.err.endswith("\n")
        assert "internal error" not in self.err
        return self.err.strip()


def without_run(report: dict[str, Any]) -> dict[str, Any]:
    """Return a report of --json without what was run: the command line and its date."""
    return {key: value for key, value in report.items() if key != "run"}


def facts_text(report: dict[str, Any]) -> str:
    """Write a report without what was run."""
    return json.dumps(without_run(report), indent=2, ensure_ascii=False)


def tflq(*arguments: object, cwd: Path | None = None, environment: dict[str, str] | None = None) -> Outcome:
    """Run `tflq` with these arguments."""
    command = [sys.executable, "-m", "tflq", *map(str, arguments)]
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", **(environment or {})}
    done = subprocess.run(command, cwd=cwd, env=variables, capture_output=True, encoding="utf-8", check=False)
    return Outcome(done.returncode, done.stdout, done.stderr)

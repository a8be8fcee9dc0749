"""Runs the command line: in this process, which takes no time to start, or in a process of its own, as a user does."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.tracked import ROOT

PROGRAM = ROOT / "tflq" / "__main__.py"


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
    """Run `tflq` with these arguments in this process.

    Standard input is empty; streams, variables of the environment, the folder, context variables and the filters of
    warnings are those of a process that starts, and are restored after the command. Caches of modules stay: a test of
    what a process reads once (CC, kernels from files, entry points) uses `tflq_process`, and so does a test of signals,
    terminals, encodings and the interpreter.
    """
    from tflq.cli import main

    words = list(map(str, arguments))
    out, err = _Stream(), _Stream()
    with pytest.MonkeyPatch.context() as patch, _warnings_of_a_process(err):
        for name, stream in (("stdin", _Stream()), ("stdout", out), ("stderr", err), ("argv", [str(PROGRAM), *words])):
            patch.setattr(sys, name, stream)
        for name, value in (environment or {}).items():
            patch.setenv(name, value)
        if cwd is not None:
            patch.chdir(cwd)
        variables = dict(os.environ)
        status = copy_context().run(_exit_status, lambda: main(words))
        assert dict(os.environ) == variables, "the command changed the environment"
    return Outcome(status, out.text(), err.text())


def tflq_process(*arguments: object, cwd: Path | None = None, environment: dict[str, str] | None = None) -> Outcome:
    """Run `tflq` with these arguments in a process of its own."""
    command = [sys.executable, "-m", "tflq", *map(str, arguments)]
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", **(environment or {})}
    done = subprocess.run(command, cwd=cwd, env=variables, capture_output=True, encoding="utf-8", check=False)
    return Outcome(done.returncode, done.stdout, done.stderr)


class CommandSession:
    """A process that runs one command after another, with the packages of a search path that this process has not."""

    def __init__(self, search_path: str) -> None:
        command = [sys.executable, "-c", "from tests.support.command import serve; serve()"]
        variables = {**os.environ, "PYTHONPATH": search_path}
        self._process = subprocess.Popen(
            command, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, *arguments: object, cwd: Path) -> Outcome:
        """Run `tflq` with these arguments in a folder, as the function `tflq` does."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([str(cwd), *map(str, arguments)]), file=self._process.stdin, flush=True)
        return Outcome(*json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def serve() -> None:
    """Run the commands that a `CommandSession` writes to standard input: a list of JSON a line, the folder first."""
    out = sys.stdout
    for line in sys.stdin:
        folder, *words = json.loads(line)
        done = tflq(*words, cwd=Path(folder))
        print(json.dumps([done.status, done.out, done.err]), file=out, flush=True)


class _Stream(io.TextIOWrapper):
    """A stream of UTF-8 that is no terminal, with its bytes in memory."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8")

    def text(self) -> str:
        """Return the text that was written."""
        self.seek(0)
        return self.read()


@contextmanager
def _warnings_of_a_process(err: _Stream) -> Iterator[None]:
    """Apply Python's own filters and print warnings, which pytest else collects, to the stream."""

    def show(message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: object) -> None:
        err.write(warnings.formatwarning(message, category, filename, lineno))

    with warnings.catch_warnings():
        warnings.resetwarnings()
        for ignored in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
            warnings.simplefilter("ignore", ignored)
        warnings.showwarning = show
        yield


def _exit_status(run: Callable[[], int]) -> int:
    """Return the status that a process would end with."""
    try:
        return run()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0 if end.code is None else 1

"""tflq in a process of its own, with limits of time and memory."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from dataclasses import dataclass, field

from tests.support.tracked import ROOT
from tflq.graph import Array

MEMORY = 2 << 30
"""Address space of the process in bytes: Python, numpy and the model together."""
SECONDS = 20.0
"""The longest that one file may take."""


@dataclass(frozen=True)
class Reaction:
    """What a program did with a file.

    Attributes:
        outcome: "refused" in one line, "runs", "crash", "hang" or "memory".
        words: the message.
        seconds: how long it took.
        inputs: what it ran on.
        outputs: of the model, where it runs.
    """

    outcome: str
    words: str = ""
    seconds: float = 0.0
    inputs: list[Array] = field(default_factory=list)
    outputs: list[Array] = field(default_factory=list)


class Subject:
    """Starts the process when it is needed, and another one when it died."""

    def __init__(self, memory: int = MEMORY, seconds: float = SECONDS) -> None:
        self._memory, self._seconds = memory, seconds
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Subject:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
        self._process = None

    def run(self, content: bytes) -> Reaction:
        """Have a file read and run."""
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        expired = threading.Event()
        timer = threading.Timer(self._seconds, lambda: (expired.set(), process.kill()))
        timer.start()
        try:
            pickle.dump(content, process.stdin)
            process.stdin.flush()
            return Reaction(*pickle.load(process.stdout))
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            status = process.wait()
            self.close()
            return Reaction("hang", f"no answer in {self._seconds:g} s") if expired.is_set() else _died(status)
        finally:
            timer.cancel()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            command = [sys.executable, "-m", "tests.hostile.worker", str(self._memory)]
            alone = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT,
                env={**os.environ, **alone},
            )  # fmt: skip
        return self._process


def _died(status: int) -> Reaction:
    return Reaction("crash", f"the process ended with status {status}")

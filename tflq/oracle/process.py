"""The parent's side of the worker process: start it, talk to it, and say how it ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import weakref
from typing import BinaryIO

from tflq.errors import OracleError
from tflq.oracle import protocol
from tflq.oracle.package import DISTRIBUTIONS
from tflq.oracle.results import OracleAborted, OracleTimeout

# Importing tensorflow takes seconds, and a minute on a loaded machine.
START_TIMEOUT_S = 180.0
_STDERR_TAIL_BYTES = 4096
_STDERR_TAIL_LINES = 4


class WorkerProcess:
    """One running worker. Once `alive` is False it stays so: start another.

    The worker's standard error goes to an unnamed file, its standard output joins it: nothing reaches the terminal.
    """

    def __init__(self, package: str, kernels: str, threads: int, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._label = f"TFLite ({DISTRIBUTIONS[package]}, {kernels})"
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed by _end
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tflq.oracle.worker", package, kernels, str(threads), str(timeout_s)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=_environment(),
            start_new_session=True,  # a Ctrl-C in the terminal is the parent's to handle
        )
        if self._process.stdin is None or self._process.stdout is None:
            raise OracleError("the oracle's worker started without pipes")
        self._requests: BinaryIO = self._process.stdin  # type: ignore[assignment]  # typed IO[bytes]
        self._replies: BinaryIO = self._process.stdout  # type: ignore[assignment]
        self._reap = weakref.finalize(self, _end, self._process, self._requests, self._replies, self._stderr)
        hello = self._exchange(None, START_TIMEOUT_S)
        if not isinstance(hello, protocol.Hello):
            self.kill()
            reason = hello.message if isinstance(hello, protocol.Refused) else f"an unexpected {type(hello).__name__}"
            raise OracleError(f"the oracle's worker cannot import {package}: {reason}")
        self.version = hello.version

    @property
    def pid(self) -> int:
        """The worker's process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether requests can still be sent; a worker that died unasked counts until a request finds out."""
        return self._reap.alive

    def request(self, message: protocol.Request) -> protocol.Reply:
        """Send a request and wait for its reply.

        Raises:
            OracleAborted: the worker died. It is gone.
            OracleTimeout: no sign of life for `timeout_s`. It has been killed.
        """
        self._stderr.seek(0)
        self._stderr.truncate()
        return self._exchange(message, self._timeout_s)

    def kill(self) -> None:
        """End the worker and release the pipes; harmless when repeated."""
        self._reap()

    def _exchange(self, message: protocol.Request | None, timeout_s: float) -> protocol.Reply:
        deadline = _Deadline(timeout_s, self._process)
        try:
            with deadline:
                if message is None:
                    protocol.await_greeting(self._replies)
                else:
                    protocol.send(self._requests, message)
                while isinstance(reply := protocol.receive(self._replies), protocol.Alive):
                    deadline.restart()
        except (OSError, EOFError):
            raise self._obituary(deadline.expired, timeout_s) from None
        except BaseException:
            self.kill()  # interrupted between two frames: what the pipe holds next has no owner
            raise
        if deadline.expired:
            self.kill()
        return reply  # type: ignore[return-value]  # the worker only sends replies

    def _obituary(self, expired: bool, timeout_s: float) -> OracleError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        status, said = self._process.returncode, self._last_words()
        self.kill()
        if expired:
            return OracleTimeout(f"{self._label} gave no answer in {timeout_s:g} s and was stopped{said}")
        return OracleAborted(f"{self._label} ended with {_name_status(status)}{said}")

    def _last_words(self) -> str:
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - _STDERR_TAIL_BYTES))
        lines = self._stderr.read().decode("utf-8", "replace").split("\n")
        words = [line.strip() for line in lines if line.strip()][-_STDERR_TAIL_LINES:]
        return ": " + " | ".join(words) if words else ""


class _Deadline(contextlib.AbstractContextManager["_Deadline"]):
    """Kills a process that is silent for too long. A timer: not every system can wait for a pipe with a limit."""

    def __init__(self, seconds: float, process: subprocess.Popen[bytes]) -> None:
        self._seconds = seconds
        self._process = process
        self.expired = False

    def __enter__(self) -> _Deadline:
        self._timer = threading.Timer(self._seconds, self._expire)
        self._timer.daemon = True
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def restart(self) -> None:
        self._timer.cancel()
        self.__enter__()

    def _expire(self) -> None:
        self.expired = True
        self._process.kill()


def _environment() -> dict[str, str]:
    """Return the worker's environment: our own import path, no graphics card, no chatter, one thread in numpy."""
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0", "PYTHONWARNINGS": "ignore"}
    alone = {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return {**os.environ, **quiet, **alone, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"}


def _end(process: subprocess.Popen[bytes], *files: BinaryIO) -> None:
    process.kill()
    process.wait()
    for file in files:
        with contextlib.suppress(OSError):  # a request that was half written cannot be flushed any more
            file.close()


def _name_status(status: int | None) -> str:
    if status is None:
        return "closed pipes"
    if status < 0:
        with contextlib.suppress(ValueError):
            return signal.Signals(-status).name
    return f"status {status}"

"""The worker process: reads requests, answers each with one reply, until its parent closes the pipe.

Started by `process.WorkerProcess` as `python -m tflq.analysis.oracle.worker PACKAGE KERNELS THREADS TIMEOUT_S`.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from typing import BinaryIO

from tflq.analysis.oracle import protocol
from tflq.analysis.oracle.runtime import Runtime
from tflq.analysis.oracle.session import Session

_LONGEST_PULSE_S = 1.0
_PARENT_POLL_S = 1.0
_ALARM_MARGIN_S = 10.0


def main() -> None:
    """Serve until the parent is gone."""
    package, kernels, threads, timeout_s = sys.argv[1:]
    requests, replies = _private_pipes()
    _end_with_parent(os.getppid())
    protocol.greet(replies)
    try:
        runtime = Runtime(package, kernels, int(threads))
    except Exception as error:
        protocol.send(replies, protocol.Refused(_one_line(error)))
        return
    protocol.send(replies, protocol.Hello(runtime.version))
    _serve(runtime, requests, replies, Pulse(replies, float(timeout_s)))


class Pulse:
    """Tells the parent between samples that the worker is alive, and ends a worker that hangs after its parent died.

    The alarm acts inside C code that never returns to Python, where no thread of ours could run.
    """

    def __init__(self, replies: BinaryIO, timeout_s: float) -> None:
        self._replies = replies
        self._alarm_s = math.ceil(timeout_s + _ALARM_MARGIN_S)
        self._pulse_s = min(_LONGEST_PULSE_S, timeout_s / 4)
        self._last = time.monotonic()

    def begin(self) -> None:
        """Start the clock of one request."""
        self._last = time.monotonic()
        self._set_alarm(self._alarm_s)

    def end(self) -> None:
        """Stop the clock: a worker may wait for its next request as long as it likes."""
        self._set_alarm(0)

    def __call__(self) -> None:
        """Send a sign of life, where the last one is some time ago."""
        if time.monotonic() - self._last >= self._pulse_s:
            protocol.send(self._replies, protocol.Alive())
            self.begin()

    @staticmethod
    def _set_alarm(seconds: int) -> None:
        if hasattr(signal, "alarm"):
            signal.alarm(seconds)


def _serve(runtime: Runtime, requests: BinaryIO, replies: BinaryIO, pulse: Pulse) -> None:
    session: Session | None = None
    while True:
        try:
            request = protocol.receive(requests)
        except EOFError:
            return
        pulse.begin()
        reply: protocol.Message
        try:
            if isinstance(request, protocol.Load):
                session = None  # the old model's memory goes before the new one's comes
                session = Session(runtime, request, pulse)
                reply = session.loaded()
            else:
                reply = _answer(session, request)
        except Exception as error:
            session, reply = None, protocol.Refused(_one_line(error))
        protocol.send(replies, reply)
        pulse.end()


def _answer(session: Session | None, request: protocol.Message) -> protocol.Message:
    if session is None:
        raise ValueError("no model is loaded")
    if isinstance(request, protocol.Prepare):
        return session.prepare(request)
    if isinstance(request, protocol.Run):
        return session.run(request)
    if isinstance(request, protocol.Time):
        return session.time(request)
    raise ValueError(f"{type(request).__name__} is no request")


def _private_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Keep the parent's pipes to ourselves: what TFLite prints on standard output goes to standard error instead."""
    if sys.platform == "win32":
        import msvcrt

        msvcrt.setmode(0, os.O_BINARY)
        msvcrt.setmode(1, os.O_BINARY)
    requests, replies = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    return os.fdopen(requests, "rb"), os.fdopen(replies, "wb")


def _end_with_parent(parent: int) -> None:
    """Leave when the parent dies while TFLite runs (it lets other threads run); between requests the pipe closes."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PARENT_POLL_S)
        os._exit(1)

    if sys.platform != "win32":  # there the parent's id stays after its death
        threading.Thread(target=watch, daemon=True).start()


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


if __name__ == "__main__":
    main()

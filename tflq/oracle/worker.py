"""The worker process: reads requests, answers each with one reply, until its parent closes the pipe.

Started by `process.WorkerProcess` as `python -m tflq.oracle.worker PACKAGE KERNELS THREADS TIMEOUT_S`.

The model that a worker holds: loaded, prepared for some input shapes, run over samples.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import BinaryIO

import numpy as np

from tflq.arrays import Array
from tflq.oracle import protocol
from tflq.oracle.results import OracleTensor
from tflq.oracle.runtime import Runtime, TfliteModel


class Session:
    """One `Load` and what follows it. Whatever TFLite raises goes through; the session is then of no more use."""

    def __init__(self, runtime: Runtime, load: protocol.Load, pulse: Callable[[], None]) -> None:
        self._runtime = runtime
        self._content = load.content.tobytes()
        self._load = load
        self._pulse = pulse
        self._shapes: tuple[tuple[int, ...] | None, ...] = ()
        self._prepared = False
        self._model = self._open()
        self._stateful = self._model.is_stateful()
        self._inputs = tuple(self._model.interface.inputs.values())

    def _open(self) -> TfliteModel:
        return self._runtime.open(self._content, self._load.signature, self._load.preserve)

    def loaded(self) -> protocol.Loaded:
        """Describe the model. What has data before memory is planned has it from the file: these are the constants."""
        tensors, interface = self._model.describe(), self._model.interface
        constants = frozenset(t.index for t in tensors if t.index not in self._inputs and self._has_data(t))
        return protocol.Loaded(tensors, interface.inputs, interface.outputs, constants, self._model.signatures)

    def _has_data(self, tensor: OracleTensor) -> bool:
        if 0 in tensor.shape or tensor.dtype in (
            "str",
            "resource",
        ):  # TFLite dereferences null for strings without data
            return False
        try:
            self._model.read(tensor.index)
        except (ValueError, RuntimeError):
            return False
        return True

    def prepare(self, request: protocol.Prepare) -> protocol.Prepared:
        """Resize the inputs and plan the memory, from the file's shapes on: earlier ones leave no trace."""
        if self._prepared:
            self._model = self._open()
        self._shapes, self._prepared = request.shapes, True
        self._allocate()
        return protocol.Prepared(self._model.describe())

    def _allocate(self) -> None:
        for index, shape in zip(self._inputs, self._shapes, strict=True):
            if shape is not None:
                self._model.resize(index, shape)
        self._model.allocate()

    def run(self, request: protocol.Run) -> protocol.Ran:
        """Run the samples one after another and collect the wanted tensors."""
        found: dict[int, list[Array]] = {index: [] for index in request.wanted}
        unavailable: dict[int, str] = {}
        for sample in range(request.samples):
            if request.fresh or (request.first and sample == 0):
                self._clear_state()
            self._invoke(request.inputs, sample)
            for index in list(found):
                try:
                    found[index].append(self._model.read(index))
                except (ValueError, RuntimeError) as error:
                    unavailable[index] = f"sample {sample}: {error}" if sample else str(error)
                    del found[index]
            self._pulse()
        return _stack(found, unavailable)

    def _clear_state(self) -> None:
        if self._stateful:
            self._model = self._open()
            self._allocate()
        else:
            self._model.reset_variables()

    def _invoke(self, inputs: tuple[Array, ...], sample: int) -> None:
        try:
            self._write(inputs, sample)
            self._model.invoke()
        except (ValueError, RuntimeError) as error:
            raise ValueError(f"sample {sample}: {error}") from error

    def _write(self, inputs: tuple[Array, ...], sample: int) -> None:
        for index, values in zip(self._inputs, inputs, strict=True):
            self._model.write(index, np.asarray(values[sample]))

    def time(self, request: protocol.Time) -> protocol.Timed:
        """Measure Invoke alone."""
        seconds = []
        for turn in range(request.repeats + 1):
            self._write(request.inputs, turn % request.samples)
            begin = time.perf_counter()
            self._model.invoke()
            seconds.append(time.perf_counter() - begin)
            self._pulse()
        return protocol.Timed(tuple(seconds[1:]))


def _stack(found: dict[int, list[Array]], unavailable: dict[int, str]) -> protocol.Ran:
    tensors, ragged = {}, {}
    for index, arrays in found.items():
        if len({(array.shape, array.dtype) for array in arrays}) == 1:
            tensors[index] = np.stack(arrays)
        else:
            ragged[index] = tuple(arrays)
    return protocol.Ran(tensors, ragged, unavailable)


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

"""A virtual device under test: the serial protocol for a model in any arithmetic."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.benchmarks.accuracy import real_outputs
from tflq.benchmarks.anomaly import squared_errors
from tflq.benchmarks.protocol import (
    BUFFER_BYTES,
    COMMAND_CHARACTERS,
    DEFAULT_WARMUPS,
    END_OF_COMMAND,
    INIT_DONE,
    LOAD_DONE,
    PERFORMANCE_MODE,
    PROFILE,
    READY,
    results_line,
)
from tflq.benchmarks.tasks import Task
from tflq.errors import InputError
from tflq.graph import Array
from tflq.parallel.executions import Execution


@dataclass(frozen=True)
class Inference:
    """One inference, from bytes to floating-point values, as in benchmark/api/submitter_implemented.h.

    Attributes:
        task: Task that defines the bytes and the results.
        execution: Model in some arithmetic.
    """

    task: Task
    execution: Execution

    def check(self) -> None:
        """Check that the model accepts the task's samples.

        Raises:
            InputError: The model does not fit.
        """
        self.task.check(self.execution.source)

    @property
    def input_bytes(self) -> tuple[int, ...]:
        """Allowed sizes of one sample in bytes: one for each type that the task's files may have."""
        return tuple(self.task.size * np.dtype(kind).itemsize for kind in self.task.stored)

    def parse_sample(self, data: bytes) -> Array:
        """Return the values of one sample, dtype[1, *task's shape].

        Raises:
            InputError: The number of bytes is wrong.
        """
        if len(data) not in self.input_bytes:
            allowed = " or ".join(map(str, self.input_bytes))
            raise InputError(f"Input db has {len(data)} bytes, expected {allowed}")
        kind = self.task.stored_dtype(len(data))
        return np.frombuffer(data, kind.newbyteorder("<")).astype(kind, copy=False).reshape(1, *self.task.shape)

    def load(self, stored: Array) -> list[Array]:
        """Return the graph's inputs for the numbers of samples (th_load_tensor)."""
        source = self.execution.source
        return self.execution.encode([self.task.encode(stored, source.tensors[source.inputs[0]])])

    def run(self, inputs: Sequence[Array]) -> Array:
        """Run the graph (th_infer) and return its first output, dtype[S, *shape]."""
        output = self.execution.graph.outputs[0]
        return self.execution.engine.run(inputs, [output])[output]

    def answers(self, samples: Sequence[Array]) -> NDArray[np.float64]:
        """Return the outputs, real[S, values], for samples in the encoding of the source's input."""
        return real_outputs(self.execution, self.run(self.execution.encode(samples)))

    def results(self, stored: Array, outputs: Array) -> NDArray[np.float32]:
        """Return a device's results (th_results), float32[S, values].

        These are the dequantized outputs; for anomalies one value, the mean squared error relative to the input.
        """
        reals = real_outputs(self.execution, outputs)
        if not self.task.is_anomaly:
            return reals.astype(np.float32)
        return squared_errors(stored.reshape(len(stored), -1).astype(np.float32), reals)[:, None]


HELP = (
    PROFILE,
    "name, profile, timestamp, help, results",
    "db load N: expect N bytes; db HH..: the next of them in hexadecimal digits; db print",
    "infer N [W=10]: N inferences after W to warm up",
)

_BYTES_A_LINE = 8
_IGNORED = "\r\n\0"


class Device:
    """The state of a device: the incomplete command, the buffer, the last results.

    It responds like MLCommons' API (benchmark/api/internally_implemented.cpp), with these differences: an inference
    without a complete sample in the buffer is an error line, and so are bytes beyond the end of the buffer.

    Args:
        inference: Model and its task.
        vendor: Name that the device reports.
        given_us: Time of one inference in microseconds; None to measure it on this computer. With a given time,
            `infer N` runs the model once and responds after N times that time.
        clock: Function that returns seconds since any moment.
        sleep: Function that waits for a number of seconds.
    """

    def __init__(
        self,
        inference: Inference,
        vendor: str,
        given_us: int | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._inference, self._vendor, self._given_us = inference, vendor, given_us
        self._clock, self._sleep, self._started = clock, sleep, clock()
        self._command = ""
        self._buffer, self._expected = bytearray(), 0
        self._results: str | None = None

    def boot(self) -> Iterator[str]:
        """Yield the lines that a device prints when it starts."""
        yield PERFORMANCE_MODE
        yield INIT_DONE
        yield READY

    def receive(self, data: bytes) -> Iterator[str]:
        """Process bytes from the host and yield the lines of the replies, each without delay.

        Line ends, which a person at a terminal types, are ignored.
        """
        for character in data.decode("ascii", "replace"):
            if character == END_OF_COMMAND:
                command, self._command = self._command, ""
                yield from self._answer(command.split())
                yield READY
            elif character not in _IGNORED and len(self._command) < COMMAND_CHARACTERS:
                self._command += character

    def _answer(self, words: list[str]) -> Iterator[str]:
        match words:
            case ["name", *_]:
                yield f"m-name-dut-[{self._vendor}]"
            case ["profile", *_]:
                yield f"m-profile-[{PROFILE}]"
                yield f"m-model-[{self._inference.task.name}]"
                yield self._time_line()
            case ["timestamp", *_]:
                yield self._lap(self._now_us())
            case ["help", *_]:
                yield from HELP
            case ["db", *arguments]:
                yield from self._buffer_command(arguments)
            case ["infer", *arguments]:
                yield from self._infer_command(arguments)
            case ["results", *_]:
                yield self._results or "e-[No inference has run]"
            case _:
                yield f"e-[Unknown command: {' '.join(words[:1])}]"

    def _buffer_command(self, arguments: list[str]) -> Iterator[str]:
        match arguments:
            case []:
                yield "e-[Command 'db' requires a subcommand]"
            case ["load"]:
                yield "e-[Command 'db load' requires the # of bytes]"
            case ["load", count, *_]:
                yield self._expect(int(count) if count.isdecimal() else 0)
            case ["print", *_]:
                shown = self._buffer.ljust(self._expected, b"\0")
                for start in range(0, len(shown), _BYTES_A_LINE):
                    yield f"m-buffer-{shown[start : start + _BYTES_A_LINE].hex('-')}"
            case [digits, *_]:
                yield from self._fill(digits)

    def _expect(self, count: int) -> str:
        if count == 0:
            return "e-[Command 'db load' must be >0 bytes]"
        if count > BUFFER_BYTES:
            return f"e-[Supplied buffer size {count} exceeds maximum of {BUFFER_BYTES}]"
        self._buffer, self._expected = bytearray(), count
        return f"m-[Expecting {count} bytes]"

    def _fill(self, digits: str) -> Iterator[str]:
        if len(digits) % 2:
            yield "e-[Insufficent number of hex digits]"
            return
        for start in range(0, len(digits), 2):
            pair = digits[start : start + 2]
            if len(self._buffer) == self._expected:
                yield "e-[The buffer is full: send db load N first]"
                return
            if not all(digit in "0123456789abcdefABCDEF" for digit in pair):
                yield f"e-[Invalid hex digit '{pair}']"
                return
            self._buffer.append(int(pair, 16))
            if len(self._buffer) == self._expected:
                yield LOAD_DONE
                return

    def _infer_command(self, arguments: list[str]) -> Iterator[str]:
        try:
            count = int(arguments[0]) if arguments else 1
            warmups = int(arguments[1]) if len(arguments) > 1 else DEFAULT_WARMUPS
        except ValueError:
            count, warmups = 0, 0
        if count <= 0:
            yield "e-[Inference iterations must be >0]"
        elif warmups < 0:
            yield "e-[Inference warmup must be >=0]"
        else:
            yield from self._infer(count, warmups)

    def _infer(self, count: int, warmups: int) -> Iterator[str]:
        try:
            stored = self._inference.parse_sample(bytes(self._buffer))
            inputs = self._inference.load(stored)
        except InputError as error:
            yield f"e-[{error}]"
            return
        yield f"m-warmup-start-{warmups}"
        self._repeat(inputs, warmups)
        yield "m-warmup-done"
        yield self._time_line()
        yield f"m-infer-start-{count}"
        start = self._now_us()
        yield self._lap(start)
        (outputs,) = self._repeat(inputs, count)
        yield self._lap(self._now_us() if self._given_us is None else start + count * self._given_us)
        yield "m-infer-done"
        self._results = results_line(self._inference.results(stored, outputs)[0])
        yield self._results

    def _repeat(self, inputs: list[Array], count: int) -> list[Array]:
        """Run the model `count` times, or once and wait for the given time; return the last output, if any."""
        start = self._clock()
        outputs = []
        for _ in range(count if self._given_us is None else min(count, 1)):
            outputs = [self._inference.run(inputs)]
        if self._given_us is not None:
            self._sleep(max(start + count * self._given_us / 1e6 - self._clock(), 0.0))
        return outputs

    def _now_us(self) -> int:
        return int((self._clock() - self._started) * 1e6)

    def _lap(self, moment_us: int) -> str:
        return f"m-lap-us-{moment_us}"

    def _time_line(self) -> str:
        given = self._given_us
        origin = "measured on this computer" if given is None else f"given, {given} us an inference, not measured"
        return f"m-time-[simulation: {origin}]"

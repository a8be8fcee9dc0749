"""A data set on a device under test, compared with the interpreter sample by sample."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.benchmarks.accuracy import LabeledSamples
from tflq.benchmarks.host import Host, Identity, Reply
from tflq.benchmarks.performance import INPUTS, SECONDS, Performance, Window
from tflq.benchmarks.protocol import READY, agree
from tflq.benchmarks.rows import Row
from tflq.benchmarks.scoring import DataSet, first_samples, run_data, score
from tflq.benchmarks.serial_port import open_port
from tflq.benchmarks.tasks import Task
from tflq.benchmarks.truth import LabeledTruth
from tflq.errors import DeviceError, InputError
from tflq.files import read_bytes
from tflq.graph import Array
from tflq.parallel.executions import Execution
from tflq.quoting import Json

_PROBES = 3
_MARGIN = 1.05  # factor on the planned duration of a loop, because the speed of boards varies


@dataclass(frozen=True)
class Sample:
    """One sample as bytes.

    Attributes:
        name: Name of the file, with the number of the window for files with several.
        data: Content of the device's buffer.
    """

    name: str
    data: bytes


@dataclass(frozen=True)
class Difference:
    """A sample with different results.

    Attributes:
        sample: Name of the sample.
        device: Numbers as written by the device.
        interpreter: Numbers of the interpreter, with three decimals.
    """

    sample: str
    device: tuple[str, ...]
    interpreter: tuple[str, ...]


@dataclass(frozen=True)
class Comparison:
    """Comparison of a device's results with the interpreter's.

    Attributes:
        samples: Number of compared samples.
        differences: Samples with different results, in order.
    """

    samples: int
    differences: tuple[Difference, ...]

    @property
    def equal(self) -> int:
        """Number of samples without a difference."""
        return self.samples - len(self.differences)

    def report(self) -> dict[str, Json]:
        """Return the comparison for --json."""
        differences = [asdict(difference) for difference in self.differences]
        return {"samples": self.samples, "equal": self.equal, "differences": differences}


@dataclass(frozen=True)
class Board:
    """Serial port of a board.

    Attributes:
        port: Serial port of the board to measure instead, such as /dev/ttyACM0.
        baud: Speed of the port in baud.
        timeout: Largest silence of the board in seconds.
    """

    port: str
    baud: int = 115200
    timeout: float = 5.0


@dataclass(frozen=True)
class BoardRun:
    """Run of a data set on a device.

    Attributes:
        identity: Name and task that the device reports.
        row: Score or times of the device.
        comparison: Comparison with the interpreter's results.
        log: Lines of the conversation, without the bytes of samples.
    """

    identity: Identity
    row: Row
    comparison: Comparison
    log: Sequence[str]


def run_board(
    board: Board,
    task: Task,
    execution: Execution,
    data: DataSet,
    seconds: float | None,
    progress: Callable[[str, int], AbstractContextManager[Callable[[int], object]]],
) -> BoardRun:
    """Run a data set on a board, and compare its results with the interpreter's.

    Args:
        board: Serial port of the board.
        task: Task that the board must run.
        execution: Execution to compare with.
        data: Data set: all samples for the score, the first five for the times.
        seconds: Duration of the timing of each input, in seconds; None for the score.
        progress: Progress callback.

    Raises:
        DeviceError: The board is missing, silent, runs another task, or violates the protocol.
    """
    log: list[str] = []
    stream = open_port(board.port, board.baud)
    try:
        host = Host(stream, board.port, board.timeout, remember(log))
        identity = host.identify()
        name = identity.name
        if identity.model != task.name:
            raise DeviceError(f"{board.port}: the board '{name}' runs {identity.model}, TASK is {task.name}")
        chosen = data if seconds is None else first_samples(data, INPUTS)
        with progress(f"board {name}", data.samples.count if seconds is None else INPUTS) as advance:
            if seconds is None:
                texts = run_samples(host, samples_of(chosen), advance)
            else:
                performance, texts = time_board(host, name, samples_of(chosen), seconds, advance)
        expected = run_data(execution, chosen)
        if seconds is None:
            values = as_numbers(texts, expected.shape[1])
            row = Row(name, score(name, values, data), values=values)
        else:
            row = Row(name, performance)
    finally:
        stream.close()
    return BoardRun(identity, row, compare(samples_of(chosen), texts, expected), log)


def remember(log: list[str]) -> Callable[[str], object]:
    """Return a listener that stores the lines of a conversation, without the bytes of samples and `m-ready`."""
    return lambda line: None if line.startswith(("> db ", READY)) else log.append(line)


def samples_of(data: DataSet) -> Iterator[Sample]:
    """Yield the samples of a data set with the content of their files."""
    if isinstance(data, LabeledSamples):
        for path in data.files:
            yield Sample(path.name, bytes(read_bytes(path)))
        return
    if isinstance(data, LabeledTruth):
        raise InputError("a board supports samples with classes, or windows")
    for path, view in zip(data.files, data.samples.views, strict=True):
        for number, window in enumerate(view):
            yield Sample(f"{path.name} window {number}", window.astype("<f4").tobytes())


def run_samples(
    host: Host, samples: Iterator[Sample], progress: Callable[[int], object] = lambda _: None
) -> list[tuple[str, ...]]:
    """Run each sample once on the device and return its results as written by the device.

    Raises:
        DeviceError: The device is silent or violates the protocol.
    """
    results = []
    for sample in samples:
        host.load(sample.data)
        results.append(host.infer(1, 0).results)
        progress(1)
    return results


def compare(samples: Iterator[Sample], device: Sequence[tuple[str, ...]], values: Array) -> Comparison:
    """Compare a device's results with the interpreter's values, real[S, values].

    A number agrees if the device's decimals are the interpreter's float32 value, rounded or truncated.
    """
    shown = np.asarray(values, np.float32)
    rows = zip(samples, device, shown, strict=True)
    return Comparison(
        len(device),
        tuple(
            Difference(sample.name, texts, tuple(f"{value:.3f}" for value in row.tolist()))
            for sample, texts, row in rows
            if not agree(row, texts)
        ),
    )


def as_numbers(results: Sequence[tuple[str, ...]], count: int) -> NDArray[np.float64]:
    """Return a device's results as numbers, float64[S, count].

    Raises:
        DeviceError: A sample has another number of results.
    """
    for number, texts in enumerate(results):
        if len(texts) != count:
            raise DeviceError(
                f"the device returns {len(texts)} results for sample {number}; the model has {count} outputs"
            )
    return np.array([[float(text) for text in texts] for texts in results])


def time_board(
    host: Host,
    name: str,
    samples: Iterator[Sample],
    seconds: float = SECONDS,
    progress: Callable[[int], object] = lambda _: None,
) -> tuple[Performance, list[tuple[str, ...]]]:
    """Run each sample for at least `seconds` on the device's own clock.

    Returns:
        Throughputs, and the results as written by the device.

    Raises:
        DeviceError: The device is silent, violates the protocol, or its clock does not advance.
    """
    windows, results = [], []
    for sample in samples:
        host.load(sample.data)
        count, reply = _run_for(host, seconds)
        windows.append(Window(sample.name, count, reply.seconds))
        results.append(reply.results)
        progress(1)
    return Performance(name, tuple(windows)), results


def _run_for(host: Host, seconds: float) -> tuple[int, Reply]:
    """Run the sample repeatedly, with an increasing number of inferences until the run lasts long enough."""
    count = _PROBES
    while True:
        reply = host.infer(count, 1, seconds * 2)
        if reply.seconds >= seconds:
            return count, reply
        if reply.seconds <= 0:
            raise DeviceError(
                f"the device's clock does not advance: m-lap-us-{reply.start_us} before and after the inferences"
            )
        count = max(count + 1, math.ceil(count * seconds / reply.seconds * _MARGIN))

"""sww01's device with MLCommons' interface board, which plays recordings to the device and records its detections.

MLCommons' runner defines the commands of the board (benchmark/runner/io_manager_enhanced.py); `dut COMMAND` is
forwarded to the device. Recordings are not played in real time: all windows run at once, and the times of detections
are the reference device's, with one frame every 32 ms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic, sleep

import numpy as np
from numpy.typing import NDArray

from tflq.benchmarks.device import Device, Inference
from tflq.benchmarks.protocol import READY
from tflq.benchmarks.wake_words import FRAME_MS, THRESHOLD, Stream, StreamWindows, windows_of
from tflq.errors import TflqError

_TICKS_A_MS = 100
"""Units of the board's processing times: 10 us."""
_NUMBERS_A_LINE = 10


class InterfaceBoard(Device):
    """A device that runs on recordings, with its interface board.

    Args:
        inference: Model and its task.
        vendor: Name that the device reports.
        given_us: Time of one inference in microseconds; None to measure it on this computer.
        clock: Function that returns seconds since any moment.
        sleep: Function that waits for a number of seconds.
        folder: Folder of the recordings, WAV files of 16 kHz.
    """

    def __init__(
        self,
        inference: Inference,
        vendor: str,
        given_us: int | None = None,
        clock: Callable[[], float] = monotonic,
        sleep: Callable[[float], None] = sleep,
        *,
        folder: Path,
    ) -> None:
        super().__init__(inference, vendor, given_us, clock, sleep)
        self._folder, self._is_listening = folder, False
        self._outputs: NDArray[np.float64] = np.zeros(0)
        self._processing_ms = 0.0

    def _answer(self, words: list[str]) -> Iterator[str]:
        match words:
            case ["dut", *command]:
                yield "m-[passed on]"
                yield READY
                yield from self._answer(command)
            case ["setbaud", *_]:
                yield "m-[a pseudo-terminal has no speed]"
            case ["ls"]:
                yield from sorted(path.name for path in self._folder.glob("*.wav"))
            case ["record_detections"]:
                self._outputs = np.zeros(0)
                yield "m-[recording]"
            case ["play", name]:
                yield from self._play(name)
            case ["print_detections"]:
                yield "Detection Timestamps (ms)"
                yield from (f"{FRAME_MS * (frame + 1)}," for frame in self._detections())
            case ["print_dutycycle"]:
                yield from self._duty_cycle()
            case ["start"]:
                self._is_listening = True
                yield "m-[listening]"
            case ["stop"]:
                yield from self._stop()
            case _:
                yield from super()._answer(words)

    def _play(self, name: str) -> Iterator[str]:
        """Run the device on a recording; it counts only while the device listens."""
        if not self._is_listening:
            yield "e-[The device does not listen: send dut start first]"
            return
        try:
            windows = self._windows(self._folder / Path(name).name)
        except TflqError as error:
            yield f"e-[{error}]"
            return
        start = self._clock()
        outputs = [self._inference.answers(windows.take(n, n + 1024)) for n in range(0, windows.count, 1024)]
        self._outputs = np.concatenate(outputs)[:, 0].astype(np.float64)
        taken_ms = 1000 * (self._clock() - start) / max(windows.count, 1)
        self._processing_ms = taken_ms if self._given_us is None else self._given_us / 1000
        yield self._time_line()
        yield f"m-played-[{name}]"

    def _windows(self, path: Path) -> StreamWindows:
        source = self._inference.execution.source
        return windows_of(self._inference.task, source, (Stream(path, (), 0.0),))

    def _detections(self) -> list[int]:
        """Return the frames with a pulse of the device: the first one, and all above the threshold."""
        frames: list[int] = np.flatnonzero(self._outputs > THRESHOLD).tolist()
        return sorted({0, *frames}) if len(self._outputs) else []

    def _duty_cycle(self) -> Iterator[str]:
        starts = (np.arange(len(self._outputs)) + 1) * FRAME_MS * _TICKS_A_MS
        yield "Duty cycle start times (s)"
        yield from _lines(starts)
        yield "Duty cycle stop times (s)"
        yield from _lines(starts + max(round(self._processing_ms * _TICKS_A_MS), 1))

    def _stop(self) -> Iterator[str]:
        if not self._is_listening:
            yield "m-[The device does not listen]"
            return
        self._is_listening = False
        codes = np.round(self._outputs * 256 - 128).astype(int)
        yield "target activations:"
        yield f"[{','.join(map(str, codes))}]"


def _lines(numbers: NDArray[np.int64]) -> Iterator[str]:
    for first in range(0, len(numbers), _NUMBERS_A_LINE):
        yield ",".join(map(str, numbers[first : first + _NUMBERS_A_LINE])) + ","

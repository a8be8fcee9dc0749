"""Speed of the interpreter on this computer, measured as MLPerf Tiny measures a device.

Each of five inputs runs repeatedly for at least ten seconds; the result is the median throughput (mlcommons/tiny,
benchmark/runner/script.py and main.py). It does not measure the speed of a chip.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from tflq.benchmarks.scoring import DataSet, first_samples
from tflq.parallel.executions import Execution

INPUTS = 5
SECONDS = 10.0


@dataclass(frozen=True)
class Window:
    """Repeated runs of one input.

    Attributes:
        file: File of the input.
        inferences: Number of inferences.
        seconds: Duration of all inferences.
    """

    file: str
    inferences: int
    seconds: float

    @property
    def throughput(self) -> float:
        """Inferences per second."""
        return self.inferences / self.seconds


@dataclass(frozen=True)
class Performance:
    """The windows of one execution or device.

    Attributes:
        name: Name of the execution or device.
        windows: One window per input.
    """

    name: str
    windows: tuple[Window, ...]

    @property
    def throughput(self) -> float:
        """Median of the windows' inferences per second."""
        return median(window.throughput for window in self.windows)

    @property
    def shortfall(self) -> str:
        """Reason why the figure does not conform to MLPerf Tiny's rules; empty if it does."""
        shortest = min(window.seconds for window in self.windows)
        if shortest < SECONDS:
            return f"an input ran for {shortest:.3g} s; the rules require {SECONDS:g} s or more"
        return "" if len(self.windows) == INPUTS else f"{len(self.windows)} inputs; the rules require {INPUTS}"


def time_inputs(
    execution: Execution,
    data: DataSet,
    seconds: float = SECONDS,
    progress: Callable[[int], object] = lambda _: None,
    clock: Callable[[], float] = time.perf_counter,
) -> Performance:
    """Run each of five inputs, one sample at a time, for at least `seconds`; encoding is not part of the time.

    Args:
        execution: Model in some arithmetic.
        data: Data set; its first files are used.
        seconds: Shortest duration of one input.
        progress: Called with 1 after each input.
        clock: Function that returns seconds since any moment.

    Raises:
        InputError: The data set has fewer than five files.
    """
    windows = []
    chosen = first_samples(data, INPUTS)
    for number, path in enumerate(chosen.files):
        encoded = execution.encode(chosen.samples.take(number, number + 1))
        execution.engine.run(encoded)  # The first run lowers nodes and fills caches.
        count, start = 0, clock()
        while (spent := clock() - start) < seconds or not count:
            execution.engine.run(encoded)
            count += 1
        windows.append(Window(path.name, count, spent))
        progress(1)
    return Performance(execution.name, tuple(windows))

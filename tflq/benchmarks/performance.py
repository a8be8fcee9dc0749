"""How fast the interpreter runs a model on this computer, measured as MLPerf Tiny measures a device.

Five inputs, each run again and again for at least ten seconds; the result is the median throughput
(mlcommons/tiny, benchmark/runner/script.py and main.py). It says nothing about the speed of a chip.
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
    """One input, run again and again.

    Attributes:
        file: where the input came from.
        inferences: how often it ran.
        seconds: how long all of them took together.
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
        name: of the execution or device.
        windows: one for each input.
    """

    name: str
    windows: tuple[Window, ...]

    @property
    def throughput(self) -> float:
        """Median of the windows' inferences per second."""
        return median(window.throughput for window in self.windows)

    @property
    def shortfall(self) -> str:
        """Why the figure does not conform to MLPerf Tiny's rules, in words; empty where it does."""
        shortest = min(window.seconds for window in self.windows)
        if shortest < SECONDS:
            return f"an input ran for {shortest:.3g} s only, at least {SECONDS:g} s are asked for"
        return "" if len(self.windows) == INPUTS else f"{len(self.windows)} inputs, {INPUTS} are asked for"


def time_inputs(
    execution: Execution,
    data: DataSet,
    seconds: float = SECONDS,
    progress: Callable[[int], object] = lambda _: None,
    clock: Callable[[], float] = time.perf_counter,
) -> Performance:
    """Run each of five inputs, one sample at a time, for at least `seconds`; encoding it is not part of the time.

    Args:
        execution: the model in some arithmetic.
        data: the data set, whose first files are taken.
        seconds: the shortest time of one input.
        progress: called with 1 after each input.
        clock: seconds since any moment.

    Raises:
        InputError: the data set has fewer than five files.
    """
    windows = []
    chosen = first_samples(data, INPUTS)
    for number, path in enumerate(chosen.files):
        encoded = execution.encode(chosen.samples.take(number, number + 1))
        execution.engine.run(encoded)  # lowers what the first run lowers, and fills the caches
        count, start = 0, clock()
        while (spent := clock() - start) < seconds or not count:
            execution.engine.run(encoded)
            count += 1
        windows.append(Window(path.name, count, spent))
        progress(1)
    return Performance(execution.name, tuple(windows))

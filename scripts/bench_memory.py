#!/usr/bin/env python3
"""Peak memory of `tflq run` and `tflq bench` over data sets of two sizes: it must not grow with the samples.

    TFLQ_DATA=<folder with models/> python scripts/bench_memory.py [--few 1000] [--many 10000] [--threads 1]

Random samples of the visual wake words model are written to a temporary folder: as one .npy file for `run`, and as one
file a sample with y_labels.csv for `bench`. Each command runs in a process of its own; its peak is the operating
system's (ru_maxrss), mapped files included. Linux counts what the starting process had as well, so this one stays
small and another writes the samples. The status is 1 if the peak of many samples is more than a tenth above that of
few.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

MODEL = "vww_96_int8"
SHAPE = (1, 96, 96, 3)
ALLOWED_GROWTH = 1.1


def write_samples(folder: Path, count: int) -> None:
    """Write samples.npy, and the folder `samples` with the same as unsigned bytes and labels of two classes."""
    import numpy as np

    rng = np.random.default_rng(0)
    array = np.lib.format.open_memmap(folder / "samples.npy", "w+", np.int8, (count, *SHAPE))
    files = folder / "samples"
    files.mkdir()
    for i in range(count):
        array[i] = rng.integers(-128, 128, SHAPE, np.int8)
        (files / f"{i:05}.bin").write_bytes(array[i].tobytes())
    (files / "y_labels.csv").write_text("".join(f"{i:05}.bin,2,{i % 2}\n" for i in range(count)))


def peak_mib(command: Sequence[str]) -> float:
    """Run a command and return its peak memory in MiB.

    Raises:
        SystemExit: it failed.
    """
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)} ended with status {os.waitstatus_to_exitcode(status)}")
    return usage.ru_maxrss / 1024


def measure(model: Path, counts: Sequence[int], threads: int) -> dict[str, list[float]]:
    """Return the peaks of each command for each number of samples."""
    peaks: dict[str, list[float]] = {"run": [], "bench": []}
    tflq = [sys.executable, "-m", "tflq"]
    for count in counts:
        with tempfile.TemporaryDirectory() as name:
            writer = multiprocessing.Process(target=write_samples, args=(Path(name), count))
            writer.start()
            writer.join()
            options = ["--threads", str(threads)]
            peaks["run"].append(peak_mib([*tflq, "run", str(model), "-i", f"{name}/samples.npy", *options]))
            arguments = ["vww01", "-m", str(model), "-d", f"{name}/samples", *options]
            peaks["bench"].append(peak_mib([*tflq, "bench", *arguments]))
    return peaks


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--few", type=int, default=1000)
    parser.add_argument("--many", type=int, default=10_000)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    root = os.environ.get("TFLQ_DATA")
    if not root:
        parser.error("TFLQ_DATA is not set: it names the folder whose models/ holds the .tflite files")
    peaks = measure(Path(root, "models", f"{MODEL}.tflite"), (options.few, options.many), options.threads)
    print(f"peak memory in MiB{options.few:>12}{options.many:>12}{'ratio':>8}")
    for command, (few, many) in peaks.items():
        print(f"tflq {command:13}{few:12.0f}{many:12.0f}{many / few:8.2f}")
    return int(any(many > ALLOWED_GROWTH * few for few, many in peaks.values()))


if __name__ == "__main__":
    sys.exit(main())

"""Results in the layout of MLCommons' published results: results/SYSTEM/TASK/MODE/{results.txt,results.json,log.txt}.

The lines of results.txt and the records of results.json have the form of MLCommons' runner (benchmark/runner/main.py
and script.py), so that its tools/submission/submission_checker.py reads them. Each file of a simulation states that the
system is simulated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tflq.benchmarks.accuracy import Accuracy, LabeledSamples
from tflq.benchmarks.board import samples_of
from tflq.benchmarks.performance import SECONDS, Performance
from tflq.benchmarks.scoring import DataSet, Score
from tflq.benchmarks.tasks import Task
from tflq.benchmarks.truth import Judged, LabeledTruth
from tflq.benchmarks.wake_words import LabeledStreams, WakeWords
from tflq.files import output_folder, write_bytes
from tflq.graph import Array

Record = dict[str, object]

_RULE = "-" * 57


@dataclass(frozen=True)
class System:
    """A measured system, for systems/NAME.json.

    Attributes:
        name: Name of the system and, with some characters replaced, of its folder.
        is_device: True for a device on its serial port, False for a simulation.
        software: Name and version of this program.
        notes: Target and settings.
    """

    name: str
    is_device: bool
    software: str
    notes: str

    @property
    def folder(self) -> str:
        """The name with '-' for everything but letters, digits, '.', '_' and '-'."""
        return re.sub(r"[^A-Za-z0-9._-]+", "-", self.name).strip("-.") or "device"

    @property
    def origin(self) -> str:
        """Origin of the figures, for each line of results.txt that states one."""
        return "device" if self.is_device else "simulation"

    @property
    def caption(self) -> str:
        """The origin in a sentence."""
        who = "a device over its serial port" if self.is_device else "a simulation on a computer, no device"
        return f"{self.software}: {self.name}, {who}"


def write_accuracy(
    root: Path, system: System, task: Task, data: DataSet, found: Score, values: Array, log: Sequence[str] = ()
) -> Path:
    """Write a system's results for each sample, and its score.

    Args:
        root: Folder above results/ and systems/; created if missing.
        system: Measured system.
        task: Task of the data.
        data: Samples.
        found: Score of `values`.
        values: Results, real[S, values].
        log: Lines of the conversation with a device; empty for a simulation.

    Returns:
        Folder of the three files.

    Raises:
        OutputError: A folder cannot be created or written.
    """
    lines = [system.caption]
    if isinstance(found, WakeWords):
        counts = f"{found.true_positives} True positives, {found.false_negatives} False negatives"
        lines.append(f"Accuracy: {counts}, {found.false_positives} False positives")
        return _write(root, system, task, "accuracy", lines, [], log)
    if isinstance(found, Accuracy):
        lines.append(f"{system.origin} ulp-mlperf: Top 1% = {found.percent:2.1f}")
    if not isinstance(found, Judged) and found.auc is not None:
        lines.append(f"{system.origin} ulp-mlperf: AUC = {found.auc:.3f}")
    records = list(_records(data, values))
    return _write(root, system, task, "accuracy", lines, records, log or _log_lines(records))


def write_performance(root: Path, system: System, task: Task, found: Performance, log: Sequence[str] = ()) -> Path:
    """Write the throughput of five inputs and its median. Arguments as for `write_accuracy`."""
    lines = [system.caption]
    for number, window in enumerate(found.windows, 1):
        lines.append(f"Performance results for window {number}")
        lines.append(f"    # Inferences : {window.inferences}")
        lines.append(f"    Runtime: {window.seconds} sec.")
        lines.append(f"    Throughput: {window.throughput} inf./sec.")
        if window.seconds >= SECONDS:
            lines.append("    Runtime requirements have been met.")
    if found.shortfall:
        lines.append(f"Not conforming: {found.shortfall}")
    lines.append(f"{system.origin} ulp-mlperf: {_RULE}")
    lines.append(f"{system.origin} ulp-mlperf: Median throughput is {found.throughput:>10.3f} inf./sec.")
    lines.append(f"{system.origin} ulp-mlperf: {_RULE}")
    records: list[Record] = [
        {
            "file": window.file,
            "infer": {
                "elapsed_time": round(window.seconds * 1e6),
                "iterations": window.inferences,
                "throughput": window.throughput,
            },
            "mode": "p",
        }
        for window in found.windows
    ]
    return _write(root, system, task, "performance", lines, records, log or lines)


def _records(data: DataSet, values: Array) -> Iterator[Record]:
    """Yield one record for each sample; windows of a file follow one another, as the runner loads them."""
    if isinstance(data, (LabeledStreams, LabeledTruth)):
        return
    labels = data.labels.tolist()
    if isinstance(data, LabeledSamples):
        counts, classes = [1] * len(labels), data.classes
    else:
        counts, classes = [len(view) for view in data.samples.views], 2
    owners = [f for f, count in enumerate(counts) for _ in range(count)]
    for owner, sample, row in zip(owners, samples_of(data), values.tolist(), strict=True):
        yield {
            "file": data.files[owner].name,
            "classes": str(classes),
            "class": str(labels[owner]),
            "infer": {"results": [round(value, 3) for value in row], "iterations": 1, "warmups": 0},
            "mode": "a",
            "sample": sample.name,
        }


def _log_lines(records: Sequence[Record]) -> list[str]:
    lines = []
    for record in records:
        infer = record["infer"]
        lines.append(f"ulp-mlperf: Loading file {record['sample']}")
        lines.append(f"ulp-mlperf:   m-results    : {infer['results'] if isinstance(infer, dict) else ''}")
    return lines


def _write(
    root: Path, system: System, task: Task, mode: str, lines: list[str], records: list[Record], log: Sequence[str]
) -> Path:
    folder = root / "results" / system.folder / task.short / mode
    with output_folder(folder) as scratch:
        (scratch / "results.txt").write_text("".join(f"{line}\n" for line in lines), "utf-8")
        (scratch / "results.json").write_text(json.dumps(records), "utf-8")
        (scratch / "log.txt").write_text("".join(f"{line}\n" for line in [system.caption, *log]), "utf-8")
    with output_folder(root / "systems") as scratch:
        write_bytes(scratch / f"{system.folder}.json", json.dumps(_description(system), indent=2).encode())
    return folder


def _description(system: System) -> dict[str, str]:
    """Return the known fields of a system's description; a submitter adds the rest."""
    board = system.name if system.is_device else f"none: simulation by {system.software}"
    return {
        "Submitter": "",
        "Division": "Open",
        "Status": "RDI",
        "Board Name": board,
        "Hardware Notes": "" if system.is_device else "simulation on a computer; no figure is a device's",
        "Inference Framework": "" if system.is_device else system.software,
        "Software Notes": system.notes,
    }

"""Result of `tflq.bench`: rows, figures and files."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tflq import __version__
from tflq.api.result import Result, paired_report
from tflq.benchmarks.accuracy import Accuracy, LabeledSamples, predictions
from tflq.benchmarks.anomaly import Detection
from tflq.benchmarks.board import BoardRun
from tflq.benchmarks.metrics import Metric, confusion_matrix, figure_of
from tflq.benchmarks.performance import Performance
from tflq.benchmarks.results_layout import System, write_accuracy, write_performance
from tflq.benchmarks.rows import Row, pairs
from tflq.benchmarks.scoring import DataSet
from tflq.benchmarks.significance import Paired
from tflq.benchmarks.tasks import Quality, Task
from tflq.benchmarks.truth import Judged, LabeledTruth
from tflq.benchmarks.wake_words import LIMIT, LabeledStreams, WakeWords
from tflq.report import Column, Table, Verdict, Word, number, word_of
from tflq.report.bench import class_table, confusion_tables, lowest_text, metric_columns, misses, row_columns, score_of

MOST_CLASSES = 100
"""Largest number of classes with a confusion matrix."""
STREAM = "sww01 is scored by false positives and negatives over a stream; files of single windows have no such score"
_SHOWN = 5
"""Number of differing board samples in the text."""
SIMULATION = "simulation on this computer: these times are not the speed of a chip"
DEVICE = "a device over its serial port, timed by its own clock"


@dataclass(frozen=True)
class BenchResult(Result):
    """Scores of the unchanged model and each target, or of a board.

    Attributes:
        model: Name of the model in reports.
        task: Task of MLPerf Tiny; None for any folder with labels.
        mode: "accuracy" or "performance".
        settings: Settings of the targets in the user's notation.
        measured: One row per arithmetic; for a board a single row.
        data: Labeled samples.
        at_least: Lowest accepted score; None without this bound.
        at_most: Highest accepted score, for a metric with a best value of 0; None without this bound.
        board: Run of the board and the name of its reference; None without a board.
        metrics: Additional metrics.
    """

    FACTS = (
        Column("task", get=lambda r: r.task.name if r.task else None),
        Column("model", "model"),
        Column("mode", "mode"),
        Column("source", "source"),
        Column("settings", "settings", text=lambda r: " ".join(r.settings)),
        *(
            Column(f"mlperf_{name}", get=lambda r, metric=metric: r.goal(metric))
            for name, metric in (("percent", "top-1"), ("auc", "auc"), ("false_of_each_kind", "wake words"))
        ),
        Column("confusion", get=lambda r: {name: matrix.tolist() for name, matrix in r.confusions.items()}),
        Column("comparison", get=lambda r: r.board and {"reference": r.board[1], **r.board[0].comparison.report()}),
    )

    model: str
    task: Task | None
    mode: str
    settings: tuple[str, ...]
    measured: tuple[Row, ...]
    data: DataSet
    at_least: float | None = None
    at_most: float | None = None
    board: tuple[BoardRun, str] | None = None
    metrics: tuple[Metric, ...] = ()

    @property
    def title(self) -> str:
        """Task and model."""
        task = f"{self.task.name}, {self.task.title}" if self.task else "a folder with labels"
        return f"{task}: {self.model}"

    @property
    def source(self) -> str:
        """Origin of the times, in words."""
        if self.board is None:
            return SIMULATION
        simulation = self.board[0].identity.simulation
        return f"a virtual device, {simulation}" if simulation else DEVICE

    @property
    def quality(self) -> Quality | None:
        """Quality goal of the benchmark for such data; wake words have one only on a stream."""
        if isinstance(self.data, LabeledStreams):
            return Quality("wake words", LIMIT)
        return self.task.quality if self.task else None

    def goal(self, metric: str) -> float | None:
        """Return the benchmark's bound of a metric; None if its goal is another metric."""
        quality = self.quality
        return quality.at_least if quality is not None and quality.metric == metric else None

    @property
    def is_kept(self) -> bool:
        """Whether all scores are within the bounds, and a board's results equal the interpreter's."""
        if self.board is not None:
            return not self.board[0].comparison.differences
        values = [
            row.result.auc or 0.0 if isinstance(row.result, Detection) else row.result.percent
            for row in self.measured
            if isinstance(row.result, (Accuracy, Detection, WakeWords))
        ]
        values += [row.result.value for row in self.measured if isinstance(row.result, Judged)]
        least = -math.inf if self.at_least is None else self.at_least
        most = math.inf if self.at_most is None else self.at_most
        return all(least <= value <= most for value in values)

    @cached_property
    def figures(self) -> Mapping[str, Mapping[str, float]]:
        """Name of a row -> name of a metric -> its value."""
        data = self.data
        if not self.metrics or not isinstance(data, (LabeledSamples, LabeledTruth)):
            return {}
        values = {row.name: np.asarray(row.values, np.float64) for row in self.measured if row.values is not None}
        first = values[self.measured[0].name]
        return {name: {m.name: figure_of(m, v, data.labels, first) for m in self.metrics} for name, v in values.items()}

    @cached_property
    def confusions(self) -> Mapping[str, NDArray[np.int64]]:
        """Name of a row -> confusion matrix, int64[true class, predicted class]."""
        if self.mode != "accuracy" or not isinstance(self.data, LabeledSamples) or self.data.classes > MOST_CLASSES:
            return {}
        labels, classes = self.data.labels, self.data.classes
        guesses = {row.name: predictions(row.values) for row in self.measured if row.values is not None}
        return {name: confusion_matrix(guessed, labels, classes) for name, guessed in guesses.items()}

    @property
    def pairs(self) -> Mapping[str, Paired]:
        """Name of a target -> correct predictions of the target and of the unchanged model, paired by sample."""
        if self.mode != "accuracy" or self.board is not None or not isinstance(self.data, LabeledSamples):
            return {}
        return pairs(self.measured, self.data.labels)

    @property
    def verdict(self) -> Verdict:
        """Score of the first row against the bound, and the lowest target; for a board the number of equal results."""
        if self.board is not None:
            comparison, reference = self.board[0].comparison, self.board[1]
            unit = f"of {comparison.samples} results are equal"
            return Verdict(word_of(not comparison.differences), comparison.equal, unit, reference)
        quality = self.quality if self.mode == "accuracy" else None
        first = next((row for row in self.measured if row.result is not None), None)
        bounds = [("at least", self.at_least), ("at most", self.at_most)]
        asked = " and ".join(f"{name} {value:g}" for name, value in bounds if value is not None)
        word: Word = word_of(self.is_kept) if asked else ""
        if first is None:
            return Verdict(word, None, "no target supports the model", asked)
        value, unit = score_of(first)
        advice = lowest_text(self.measured, quality)
        return Verdict(word, value, f"{unit} {first.name}", asked, self.data.samples.count, advice)

    @property
    def notes(self) -> Sequence[str]:
        """Missing goals, and the origin of the times."""
        stream = [STREAM] if self.mode == "accuracy" and self.task is not None and self.quality is None else []
        timing = f"median of five inputs, one inference after the other; {self.source}"
        return [*stream, *([timing] if self.mode == "performance" else [])]

    def tables(self) -> Sequence[Table]:
        """Return the rows, the classes, and the differences of a board."""
        pairs, first = self.pairs, self.measured[0].name
        quality = self.quality if self.mode == "accuracy" else None
        paired = Column(
            "paired",
            f"beside {first} (McNemar)",
            get=lambda row: paired_report(pairs[row.name], first) if row.name in pairs else None,
            text=lambda row: str(pairs.get(row.name, "")),
            rank=3,
        )
        columns = (*row_columns(self.measured, quality), *metric_columns(self.metrics, self.figures))
        columns += (paired,) if pairs else ()
        rows = Table("rows", columns, self.measured, "Results", marked=lambda row: misses(row, quality))
        return [rows, class_table(self.measured), *confusion_tables(self.confusions), *self._differences()]

    def _differences(self) -> list[Table]:
        if self.board is None:
            return []
        run, reference = self.board
        columns = (
            number("", "sample", "sample"),
            Column("", f"board '{run.row.name}'", get=lambda d: " ".join(d.device)),
            Column("", reference, get=lambda d: " ".join(d.interpreter)),
        )
        shown = run.comparison.differences[:_SHOWN]
        title = "Samples that differ" + f", the first {_SHOWN}" * (len(run.comparison.differences) > _SHOWN)
        return [Table("", columns, shown, title)]

    def write_results(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write each row in the layout of MLCommons' published results; refused models are omitted.

        Returns:
            Folders that were written.

        Raises:
            OutputError: A folder cannot be created or written.
        """
        written = []
        for row in self.measured:
            system, log = self._system(row), self.board[0].log if self.board else ()
            if row.result is None or self.task is None:
                continue
            if isinstance(row.result, Performance):
                written.append(write_performance(Path(folder), system, self.task, row.result, log))
            elif row.values is not None:
                args = (Path(folder), system, self.task, self.data, row.result, row.values, log)
                written.append(write_accuracy(*args))
        return written

    def _system(self, row: Row) -> System:
        software = f"tflq {__version__}"
        if self.board is None:
            notes = " ".join([row.name, *(self.settings if row.name != "as is" else ())])
            return System(f"tflq {row.name}", False, software, notes)
        run, reference = self.board
        return System(run.identity.name, not run.identity.simulation, software, f"compared with {reference}")

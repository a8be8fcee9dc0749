"""`tflq.bench`: accuracy and performance on a labeled data set: as is, for targets, or of a board."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tflq import __version__
from tflq.api.calibrate import calibrate, refuse_calibration_without_target
from tflq.api.options import CalibrationOptions, LabelSource, Progress, TargetOptions, changed, silent
from tflq.api.read_model import ModelSource, name_of, read_model
from tflq.api.recover import RecoverOptions, recover_ranged
from tflq.api.result import Result, paired_report
from tflq.api.run_record import recorded
from tflq.api.samples import open_samples
from tflq.api.target import ALL, choose_targets, complete, refuse_settings_without_target
from tflq.api.trials import Span
from tflq.benchmarks.accuracy import Accuracy, LabeledSamples, predictions
from tflq.benchmarks.anomaly import Detection, LabeledWindows
from tflq.benchmarks.board import Board, BoardRun, run_board
from tflq.benchmarks.metrics import AUC, TOP_1, Metric, confusion_matrix, figure_of, find_metric
from tflq.benchmarks.performance import INPUTS, SECONDS, Performance
from tflq.benchmarks.results_layout import System, write_accuracy, write_performance
from tflq.benchmarks.rows import Candidate, Row, candidates, measure_accuracy, measure_performance, pairs
from tflq.benchmarks.scoring import DataSet, load_data, split_named, take_samples
from tflq.benchmarks.significance import Paired
from tflq.benchmarks.tasks import Quality, Task, find_task
from tflq.benchmarks.truth import Judged, LabeledTruth
from tflq.benchmarks.wake_words import LIMIT, LabeledStreams, WakeWords
from tflq.converters.settings import Settings
from tflq.converters.targets import Target
from tflq.errors import UsageError
from tflq.graph import Array, Model
from tflq.interpreter.runtimes import RuntimeName
from tflq.parallel.executions import taking
from tflq.precision.recover.reference import taken
from tflq.report import Column, Table, Verdict, Word, number, word_of
from tflq.report.bench import class_table, confusion_tables, lowest_text, metric_columns, misses, row_columns, score_of

MOST_CLASSES = 100
"""Classes of which the confusion matrix is told."""
STREAM = "sww01 is judged by false positives and negatives over a stream, which windows in files do not give"
_SHOWN = 5
"""Samples of a board that differ, in the text."""
SIMULATION = "simulation on this computer: no figure is the speed of a chip"
DEVICE = "a device over its serial port, timed by its own clock"


@dataclass(frozen=True)
class BenchOptions:
    """What is measured.

    Attributes:
        take: Which of the samples to use; None for all.
        labels: Classes of samples without labels of their own: a file .npy or .csv, or integers.
        targets: quantize for these, too; ("all",) is every one with its defaults.
        runtimes: Runtimes to measure in addition to TFLite's reference kernels.
        target: settings of each of them.
        calibration: their ranges.
        mode: "performance" measures the speed of the simulation on this computer, median of five inputs.
        seconds: time each input of performance mode for so long; None for 10, and less does not conform.
        threads: run so many chunks of samples at the same time; results do not depend on it.
        at_least: accuracy in percent, or AUC, mAP or mIoU (0..1) where that is the score, for `is_kept`.
        at_most: the same for a word error rate, percent.
        metrics: figures of a classifier beside its accuracy: "top-3" and the like, "sqnr" (of the outputs, against the
            model as it is), or "FILE.py:function", called with outputs float64[S, classes] and labels int64[S]; of
            boxes "map", "map50", "map75", of masks "miou", of texts "wer".
        board: a board that answers instead, and whose results are compared with the interpreter's.
        jobs: processes that measure accuracy; those of more than one import the program that calls, which must not run
            then.
        scheduler: address of a dask scheduler whose workers are used instead.
        recover: recover each target with these samples, too, and measure all on the others.
    """

    take: Span | None = None
    labels: LabelSource | None = None
    targets: tuple[str, ...] = ()
    runtimes: tuple[RuntimeName, ...] = ()
    target: TargetOptions = field(default_factory=TargetOptions)
    calibration: CalibrationOptions = field(default_factory=CalibrationOptions)
    mode: Literal["accuracy", "performance"] = "accuracy"
    seconds: float | None = None
    threads: int = 1
    at_least: float | None = None
    at_most: float | None = None
    board: Board | None = None
    metrics: tuple[str, ...] = ()
    jobs: int = 1
    scheduler: str | None = None
    recover: Span | None = None

    @property
    def bound(self) -> str | None:
        """The option that bounds the score; None without one."""
        given = (("--at-least", self.at_least), ("--at-most", self.at_most))
        return next((name for name, value in given if value is not None), None)


@dataclass(frozen=True)
class BenchResult(Result):
    """Scores of the unchanged model and each target, or of a board.

    Attributes:
        model: how reports call it.
        task: None for any folder with labels.
        mode: "accuracy" or "performance".
        settings: of the targets, as they were given.
        measured: a row for each; of a board one.
        data: the samples.
        at_least: the least score; None where none is asked for.
        at_most: the most, of a score of which less is better.
        board: what a board did, and beside whom; None without one.
        metrics: that were asked for.
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
        """Where times come from, in words."""
        if self.board is None:
            return SIMULATION
        simulation = self.board[0].identity.simulation
        return f"a virtual device, {simulation}" if simulation else DEVICE

    @property
    def quality(self) -> Quality | None:
        """What the benchmark asks of such data; of wake words only where they are a stream."""
        if isinstance(self.data, LabeledStreams):
            return Quality("wake words", LIMIT)
        return self.task.quality if self.task else None

    def goal(self, metric: str) -> float | None:
        """Return the benchmark's bound of a metric; None if its goal is another metric."""
        quality = self.quality
        return quality.at_least if quality is not None and quality.metric == metric else None

    @property
    def is_kept(self) -> bool:
        """Whether no row is beyond the bound of the score, and a board's results are the interpreter's."""
        if self.board is not None:
            return not self.board[0].comparison.differences
        values = [
            row.found.auc or 0.0 if isinstance(row.found, Detection) else row.found.percent
            for row in self.measured
            if isinstance(row.found, (Accuracy, Detection, WakeWords))
        ]
        values += [row.found.value for row in self.measured if isinstance(row.found, Judged)]
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
        """Name of a row -> how often each class was taken for each: int64[true class, predicted class]."""
        if self.mode != "accuracy" or not isinstance(self.data, LabeledSamples) or self.data.classes > MOST_CLASSES:
            return {}
        labels, classes = self.data.labels, self.data.classes
        found = {row.name: predictions(row.values) for row in self.measured if row.values is not None}
        return {name: confusion_matrix(guessed, labels, classes) for name, guessed in found.items()}

    @property
    def pairs(self) -> Mapping[str, Paired]:
        """Name of a target -> its right answers beside those of the model as it is, sample by sample."""
        if self.mode != "accuracy" or self.board is not None or not isinstance(self.data, LabeledSamples):
            return {}
        return pairs(self.measured, self.data.labels)

    @property
    def verdict(self) -> Verdict:
        """Score of the first row against the bound, and the lowest target; of a board the equal results."""
        if self.board is not None:
            comparison, reference = self.board[0].comparison, self.board[1]
            unit = f"of {comparison.samples} results are equal"
            return Verdict(word_of(not comparison.differences), comparison.equal, unit, reference)
        quality = self.quality if self.mode == "accuracy" else None
        first = next((row for row in self.measured if row.found is not None), None)
        bounds = [("at least", self.at_least), ("at most", self.at_most)]
        asked = " and ".join(f"{name} {value:g}" for name, value in bounds if value is not None)
        word: Word = word_of(self.is_kept) if asked else ""
        if first is None:
            return Verdict(word, None, "no target takes the model", asked)
        value, unit = score_of(first)
        advice = lowest_text(self.measured, quality)
        return Verdict(word, value, f"{unit} {first.name}", asked, self.data.samples.count, advice)

    @property
    def notes(self) -> Sequence[str]:
        """Missing goals, the source of times."""
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
        """Write each row in the layout of mlcommons' published results; one that was refused has nothing to write.

        Returns:
            The folders that were written.

        Raises:
            OutputError: a folder cannot be made or written.
        """
        written = []
        for row in self.measured:
            system, log = self._system(row), self.board[0].log if self.board else ()
            if row.found is None or self.task is None:
                continue
            if isinstance(row.found, Performance):
                written.append(write_performance(Path(folder), system, self.task, row.found, log))
            elif row.values is not None:
                args = (Path(folder), system, self.task, self.data, row.found, row.values, log)
                written.append(write_accuracy(*args))
        return written

    def _system(self, row: Row) -> System:
        software = f"tflq {__version__}"
        if self.board is None:
            notes = " ".join([row.name, *(self.settings if row.name != "as is" else ())])
            return System(f"tflq {row.name}", False, software, notes)
        run, reference = self.board
        return System(run.identity.name, not run.identity.simulation, software, f"compared with {reference}")


@recorded
def bench(
    model: ModelSource,
    data: str | os.PathLike[str] | tuple[Array, Array],
    task: str | None = None,
    options: BenchOptions = BenchOptions(),
    *,
    progress: Progress = silent,
    **changes: object,
) -> BenchResult:
    """Measure a model on a labeled data set: as it is and for each target; or a board, compared with one of these.

    Args:
        model: to measure.
        data: "[TASK=]DIR": the folder with the samples and y_labels.csv, or a data description .json
            (docs/guides/data.md); or
            (x, y), samples and classes; or samples, if `labels` are given.
        task: kws01, vww01, ic01, ad01 or sww01; None where files hold what the model's input takes.
        options: what is measured.
        progress: shows how far it is.
        **changes: fields of the options.

    Raises:
        UsageError: options that contradict each other.
        OptionError, InputError, UnsupportedError: a task, data or a model that do not fit.
        DeviceError: no board, silence, or answers outside the protocol.
    """
    options = changed(options, changes)
    wanted = complete(options.target, options.calibration, options.targets)
    _refuse_contradictions(options)
    if not options.targets:
        refuse_settings_without_target(wanted)
        refuse_calibration_without_target(options.calibration)
    targets = choose_targets(options.targets, wanted, recovers=options.recover is not None)
    original = read_model(model)
    found, samples = _read_data(original, data, task, options)
    _score_of(samples).require(options.at_least, options.at_most)
    metrics = _metrics(options, samples)
    only = targets[0][0].name if len(targets) == 1 else None
    ranged = calibrate(original, options.calibration, target=only, progress=progress)
    chosen = candidates(original, ranged, targets, ALL in options.targets, options.runtimes)
    if options.recover is not None:
        chosen += _recovered((original, ranged), targets, wanted, samples, options.recover)
        samples = _without(samples, options.recover)
    for candidate in chosen:
        if candidate.execution is not None:
            candidate.execution.engine.threads = options.threads
    given, bounds = (*wanted.settings, *wanted.layers), (options.at_least, options.at_most)
    result = BenchResult(name_of(model), found, options.mode, given, (), samples, *bounds, metrics=metrics)
    if options.board is not None:
        run, beside = _run_board(options.board, options, result, chosen, progress)
        return replace(result, measured=(run.row,), board=(run, beside))
    result = replace(result, measured=_measure(chosen, samples, options, progress))
    _ = result.figures  # so that a metric of the user's that fails does so before anything is printed
    return result


def _run_board(
    board: Board, options: BenchOptions, result: BenchResult, chosen: Sequence[Candidate], progress: Progress
) -> tuple[BoardRun, str]:
    """Measure a board, beside the one arithmetic that is left, whose name is returned, too."""
    task, samples = result.task, result.data
    if isinstance(samples, LabeledStreams):
        raise UsageError("--port loads samples into a board; a stream is played to it by mlcommons' runner")
    if task is None:
        raise UsageError("--port needs TASK: the board says which one it runs, and it must be that")
    if len(chosen) > 2 or (execution := chosen[-1].execution) is None:
        raise UsageError("--port compares with one arithmetic: the model as it is, or one --target")
    seconds = (options.seconds or SECONDS) if options.mode == "performance" else None
    return run_board(board, task, execution, samples, seconds, progress), execution.name


def _metrics(options: BenchOptions, samples: DataSet) -> tuple[Metric, ...]:
    if options.metrics and (options.mode == "performance" or not isinstance(samples, (LabeledSamples, LabeledTruth))):
        raise UsageError("--metric is for the accuracy of a classifier, and for boxes, masks and texts")
    kind = samples.labels.metric.kind if isinstance(samples, LabeledTruth) else "classes"
    return tuple(find_metric(name).for_labels(kind) for name in options.metrics)


def _score_of(samples: DataSet) -> Metric:
    if isinstance(samples, LabeledTruth):
        return samples.labels.metric
    return AUC if isinstance(samples, LabeledWindows) else TOP_1


def _read_data(
    model: Model, data: str | os.PathLike[str] | tuple[Array, Array], task: str | None, options: BenchOptions
) -> tuple[Task | None, DataSet]:
    samples: DataSet
    if isinstance(data, tuple) or options.labels is not None:
        opened = open_samples(model, data if isinstance(data, tuple) else os.fspath(data), labels=options.labels)
        if not isinstance(opened.labels, np.ndarray):
            raise UsageError("the samples of a tuple are (x, y): arrays, and classes y")
        known_task = None if task is None else find_task(task)
        samples = LabeledSamples(opened.samples, opened.labels, model.main.tensors[model.main.outputs[0]].size)
    else:
        known_task, folder = _named(task, os.fspath(data))
        samples = load_data(known_task, folder, model.main, None if options.take is None else options.take.stop)
    return known_task, samples if options.take is None else take_samples(samples, options.take)


def _named(task: str | None, data: str) -> tuple[Task | None, Path]:
    """Return the task and the folder, each of which may name the task."""
    named, folder = split_named(data)
    found = named if task is None else find_task(task)
    if named is not None and found is not named:
        raise UsageError(f"TASK is {task}, --data is for {named.name}; name one of them")
    return found, folder


def _refuse_contradictions(options: BenchOptions) -> None:
    if options.board is not None and options.bound is not None:
        raise UsageError(f"{options.bound} is for models; with --port the status is 1 if the board differs")
    if options.mode == "accuracy" and options.seconds is not None:
        raise UsageError("--seconds is for --mode performance")
    is_spread = options.jobs > 1 or options.scheduler is not None
    if is_spread and (options.mode == "performance" or options.board is not None):
        raise UsageError("--jobs and --scheduler share out the samples of --mode accuracy; times are one process's own")
    if options.recover is not None and (options.mode == "performance" or options.board or not options.targets):
        raise UsageError("--recover is for the accuracy of a --target")
    if options.recover is not None and ALL in options.targets:
        raise UsageError("--recover takes some time for each target; name them instead of `all`")
    if options.mode == "performance" and options.bound is not None:
        raise UsageError(f"{options.bound} is for --mode accuracy")


def _recovered(
    models: tuple[Model, Model],
    targets: list[tuple[Target, Settings]],
    wanted: TargetOptions,
    data: DataSet,
    span: Span,
) -> list[Candidate]:
    """Return each target with weights that were fitted to some of the samples."""
    found = []
    for target, settings in targets:
        options = replace(wanted, name=target.name)
        recovered = recover_ranged(models, target, settings, options, span.select(data.samples), RecoverOptions())
        execution = taking(recovered.recovery.execution, models[0].main)
        found.append(Candidate(f"{target.name}, recovered", execution))
    return found


def _without(data: DataSet, span: Span) -> LabeledSamples:
    """Return the samples that nothing was fitted to."""
    if not isinstance(data, LabeledSamples):
        raise UsageError("--recover is for data sets of a classifier")
    others = np.delete(np.arange(data.samples.count), np.arange(span.start, span.stop))
    if not others.size:
        raise UsageError(f"--recover {span} leaves no samples to measure on")
    return replace(data, samples=taken(data.samples, others), labels=data.labels[others], files=())


def _measure(chosen: list[Candidate], data: DataSet, options: BenchOptions, progress: Progress) -> tuple[Row, ...]:
    count = sum(candidate.execution is not None for candidate in chosen)
    if options.mode == "performance":
        with progress("bench", INPUTS * count) as advance:
            return tuple(measure_performance(chosen, data, options.seconds or SECONDS, advance))
    with progress("bench", data.samples.count * count) as advance:
        return tuple(measure_accuracy(chosen, data, advance, options.jobs, options.scheduler))

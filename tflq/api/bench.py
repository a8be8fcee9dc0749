"""`tflq.bench`: accuracy and performance on a labeled data set, of the unchanged model, for targets, or of a board."""

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
from tflq.api.options import CalibrationOptions, LabelSource, Progress, TargetOptions, replace_options, silent
from tflq.api.read_model import ModelSource, name_of, read_model
from tflq.api.recover import RecoverOptions, recover_ranged
from tflq.api.result import Result, paired_report
from tflq.api.run_record import record_call
from tflq.api.samples import open_samples
from tflq.api.target import ALL, choose_targets, merge_settings, refuse_settings_without_target
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
"""Largest number of classes with a confusion matrix."""
STREAM = "sww01 is scored by false positives and negatives over a stream; files of single windows have no such score"
_SHOWN = 5
"""Number of differing board samples in the text."""
SIMULATION = "simulation on this computer: these times are not the speed of a chip"
DEVICE = "a device over its serial port, timed by its own clock"


@dataclass(frozen=True)
class BenchOptions:
    """Options of a benchmark.

    With several jobs, processes import the calling program, which must not start the benchmark on import.

    Attributes:
        take: Range of samples to use (default: all).
        labels: Classes of samples that have no labels: a file .npy or .csv, or integers.
        targets: Targets to measure in addition; "all" is every target with its defaults.
        runtimes: Runtimes to measure in addition to TFLite's reference kernels.
        target: Settings of these targets.
        calibration: Ranges for the targets.
        mode: Figures to measure: "accuracy", or "performance", the speed of the simulation on this computer (median of
            five inputs).
        seconds: Duration of the timing of each input in performance mode, in seconds (default: 10); a shorter time does
            not conform to the benchmark.
        threads: Number of chunks of samples that run at the same time; results do not depend on it. More than one pays
            off with one thread for numpy's own products: OPENBLAS_NUM_THREADS=1.
        at_least: Lowest accepted score: accuracy in percent, or AUC, mAP or mIoU (0..1).
        at_most: Highest accepted word error rate in percent.
        metrics: Metrics to compute in addition to the accuracy: top-K (such as top-3), sqnr (of the outputs, relative
            to the unchanged model), or FILE.py:function, called with outputs float64[S, classes] and labels int64[S]
            (only files that you trust); for boxes map, map50, map75; for masks miou; for texts wer
            (docs/guides/data.md).
        board: Board to measure instead; its results are compared with the interpreter's.
        jobs: Number of processes for the accuracy; results do not depend on it.
        scheduler: Address of a dask scheduler with workers to use instead of processes (extra `cluster`).
        recover: Range of samples to recover weights with (docs/guides/recover.md); each target is also measured with
            recovered weights, all figures on the other samples.
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
        """The option that bounds the score; None without a bound."""
        given = (("--at-least", self.at_least), ("--at-most", self.at_most))
        return next((name for name, value in given if value is not None), None)


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
            return Verdict(word, None, "no target takes the model", asked)
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


@record_call
def bench(
    model: ModelSource,
    data: str | os.PathLike[str] | tuple[Array, Array],
    task: str | None = None,
    options: BenchOptions = BenchOptions(),
    *,
    progress: Progress = silent,
    **changes: object,
) -> BenchResult:
    """Measure the unchanged model and each target on a labeled data set, or compare a board with one of them.

    Args:
        model: Model to measure.
        data: "[TASK=]DIR": the folder with the samples and y_labels.csv, or a data description .json
            (docs/guides/data.md); or (x, y), samples and classes; or samples, if `labels` are given.
        task: kws01, vww01, ic01, ad01 or sww01; None for any folder with y_labels.csv and files in the format of the
            model's input.
        options: Options of the benchmark.
        progress: Progress callback.
        **changes: Fields of the options, by name.

    Raises:
        UsageError: Options that contradict each other.
        OptionError, InputError, UnsupportedError: A task, data or a model that do not fit.
        DeviceError: The board is missing, silent, or violates the protocol.
    """
    options = replace_options(options, changes)
    wanted = merge_settings(options.target, options.calibration, options.targets)
    _refuse_contradictions(options)
    if not options.targets:
        refuse_settings_without_target(wanted)
        refuse_calibration_without_target(options.calibration)
    targets = choose_targets(options.targets, wanted, recovers=options.recover is not None)
    original = read_model(model)
    known_task, samples = _read_data(original, data, task, options)
    _score_of(samples).require(options.at_least, options.at_most)
    metrics = _metrics(options, samples)
    ranged = calibrate(original, options.calibration, progress=progress)
    chosen = candidates(original, ranged, targets, ALL in options.targets, options.runtimes)
    if options.recover is not None:
        chosen += _recover_targets((original, ranged), targets, wanted, samples, options.recover)
        samples = _exclude_span(samples, options.recover)
    for candidate in chosen:
        if candidate.execution is not None:
            candidate.execution.engine.threads = options.threads
    given, bounds = (*wanted.settings, *wanted.layers), (options.at_least, options.at_most)
    result = BenchResult(name_of(model), known_task, options.mode, given, (), samples, *bounds, metrics=metrics)
    if options.board is not None:
        run, beside = _run_board(options.board, options, result, chosen, progress)
        return replace(result, measured=(run.row,), board=(run, beside))
    result = replace(result, measured=_measure(chosen, samples, options, progress))
    _ = result.figures  # a user's metric that fails must fail before any output
    return result


def _run_board(
    board: Board, options: BenchOptions, result: BenchResult, chosen: Sequence[Candidate], progress: Progress
) -> tuple[BoardRun, str]:
    """Measure a board and compare it with the one remaining arithmetic; return the run and the arithmetic's name."""
    task, samples = result.task, result.data
    if isinstance(samples, LabeledStreams):
        raise UsageError("--port loads samples into a board; a stream is played to it by mlcommons' runner")
    if task is None:
        raise UsageError("--port needs TASK, which must be the task that the board reports")
    if len(chosen) > 2 or (execution := chosen[-1].execution) is None:
        raise UsageError("--port compares with one arithmetic: the unchanged model, or one --target")
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
            raise UsageError("data: a tuple must be (x, y), arrays and classes y")
        known_task = None if task is None else find_task(task)
        samples = LabeledSamples(opened.samples, opened.labels, model.main.tensors[model.main.outputs[0]].size)
    else:
        known_task, folder = _split_task(task, os.fspath(data))
        samples = load_data(known_task, folder, model.main, None if options.take is None else options.take.stop)
    return known_task, samples if options.take is None else take_samples(samples, options.take)


def _split_task(task: str | None, data: str) -> tuple[Task | None, Path]:
    """Return the task and the folder; `data` may contain the name of the task, too."""
    named, folder = split_named(data)
    chosen = named if task is None else find_task(task)
    if named is not None and chosen is not named:
        raise UsageError(f"TASK is {task}, --data is for {named.name}; name one of them")
    return chosen, folder


def _refuse_contradictions(options: BenchOptions) -> None:
    if options.board is not None and options.bound is not None:
        raise UsageError(
            f"{options.bound} bounds the score of a model; omit it with --port, where the status is 1 if the board "
            "differs"
        )
    if options.mode == "accuracy" and options.seconds is not None:
        raise UsageError("--seconds needs --mode performance")
    is_spread = options.jobs > 1 or options.scheduler is not None
    if is_spread and (options.mode == "performance" or options.board is not None):
        raise UsageError(
            "--jobs and --scheduler distribute the samples of --mode accuracy; times are measured in one process"
        )
    if options.recover is not None and (options.mode == "performance" or options.board or not options.targets):
        raise UsageError("--recover needs --target and --mode accuracy")
    if options.recover is not None and ALL in options.targets:
        raise UsageError("--recover does not accept `all`; name the targets")
    if options.mode == "performance" and options.bound is not None:
        raise UsageError(f"{options.bound} needs --mode accuracy")


def _recover_targets(
    models: tuple[Model, Model],
    targets: list[tuple[Target, Settings]],
    wanted: TargetOptions,
    data: DataSet,
    span: Span,
) -> list[Candidate]:
    """Return a candidate per target with weights that were fitted to some of the samples."""
    recovered_candidates = []
    for target, settings in targets:
        options = replace(wanted, name=target.name)
        recovered = recover_ranged(models, target, settings, options, span.select(data.samples), RecoverOptions())
        execution = taking(recovered.recovery.execution, models[0].main)
        recovered_candidates.append(Candidate(f"{target.name}, recovered", execution))
    return recovered_candidates


def _exclude_span(data: DataSet, span: Span) -> LabeledSamples:
    """Return the samples outside the span, to which no weights were fitted."""
    if not isinstance(data, LabeledSamples):
        raise UsageError("--recover needs a data set of a classifier")
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

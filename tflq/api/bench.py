"""`tflq.bench`: accuracy and performance on a labeled data set, of the unchanged model, for targets, or of a board."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from tflq.api.calibrate import calibrate, refuse_calibration_without_target
from tflq.api.options import CalibrationOptions, LabelSource, Progress, TargetOptions, replace_options, silent
from tflq.api.read_model import ModelSource, name_of, read_model
from tflq.api.recover import RecoverOptions, recover_ranged
from tflq.api.run_record import record_call
from tflq.api.samples import open_samples
from tflq.api.target import ALL, choose_targets, merge_settings, refuse_settings_without_target
from tflq.api.trials import Span
from tflq.benchmarks.accuracy import LabeledSamples
from tflq.benchmarks.anomaly import LabeledWindows
from tflq.benchmarks.board import Board, BoardRun, run_board
from tflq.benchmarks.metrics import AUC, TOP_1, Metric, find_metric
from tflq.benchmarks.performance import INPUTS, SECONDS
from tflq.benchmarks.rows import Candidate, Row, candidates, measure_accuracy, measure_performance
from tflq.benchmarks.scoring import DataSet, load_data, split_named, take_samples
from tflq.benchmarks.tasks import Task, find_task
from tflq.benchmarks.truth import LabeledTruth
from tflq.benchmarks.wake_words import LabeledStreams
from tflq.converters.settings import Settings
from tflq.converters.targets import Target
from tflq.errors import UsageError
from tflq.graph import Array, Model
from tflq.interpreter.runtimes import RuntimeName
from tflq.parallel.executions import taking
from tflq.precision.recover.reference import taken

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tflq.api.keywords import BenchKeywords
from tflq.api.bench_result import BenchResult


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


@record_call
def bench(
    model: ModelSource,
    data: str | os.PathLike[str] | tuple[Array, Array],
    task: str | None = None,
    options: BenchOptions = BenchOptions(),
    *,
    progress: Progress = silent,
    **changes: Unpack[BenchKeywords],
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
    only = targets[0][0].name if len(targets) == 1 else None
    ranged = calibrate(original, options.calibration, target=only, progress=progress)
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
        raise UsageError("--metric needs --mode accuracy and a classifier, boxes, masks or texts")
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

"""Common parts of `sensitivity` and `search`: samples that judge a setting, and workers that try settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from tflq.api.calibrate import calibrate
from tflq.api.options import CalibrationOptions, LabelSource, Progress, SampleSource, TargetOptions
from tflq.api.read_model import ModelSource, read_model
from tflq.api.samples import open_samples, split_labels
from tflq.api.target import choose_target
from tflq.benchmarks.metrics import SCORES, Labels, Metric, Truth, find_metric
from tflq.benchmarks.scoring import kind_of_labels
from tflq.converters.settled import dequantized
from tflq.errors import UsageError
from tflq.graph import Graph, Model
from tflq.parallel.workers import open_workers
from tflq.precision.evaluate import Evaluator, evaluate
from tflq.precision.problem import Problem, make_problem
from tflq.precision.recover import RealSamples, RecoverySettings
from tflq.precision.recover.reference import split
from tflq.precision.recovered import Recovering
from tflq.precision.results_file import ResultsFile
from tflq.sampling import Samples
from tflq.sampling.samples import Span as Span

DEFAULT_SAMPLES = 64
_Judged = TypeVar("_Judged", bound="JudgeOptions")


def labels_in(span: Span, labels: Labels) -> Labels:
    """Return the labels of some samples."""
    return labels.part(span.start, span.stop) if isinstance(labels, Truth) else labels[span.start : span.stop]


@dataclass(frozen=True)
class JudgeOptions:
    """Options that select the figure and the samples that judge settings.

    Attributes:
        data: Labeled data set instead of other samples, TASK=DIR for a task of `tflq bench`, or DIR, a folder with
            y_labels.csv and files in the format of the model's input, or a data description .json.
        span: Range of samples to use (default: all).
        calibration: Ranges of the model's tensors.
        labels: Classes of the named samples: a file .npy or .csv, or integers, one for each sample.
        metric: Metric to judge by instead of the accuracy: top-K (such as top-3), sqnr, or FILE.py:function (only files
            that you trust). It needs labels.
    """

    data: str | None = None
    span: Span | None = None
    calibration: CalibrationOptions = field(default_factory=CalibrationOptions)
    metric: str | None = None
    labels: LabelSource | None = field(default=None, kw_only=True)

    @property
    def is_labeled(self) -> bool:
        """Whether samples have labels."""
        return self.data is not None or self.labels is not None

    def resolve_metric(self) -> Metric:
        """Return the metric.

        Raises:
            UsageError: A metric without labels.
            OptionError, InputError: As for `find_metric`.
        """
        if self.metric is not None and not self.is_labeled:
            raise UsageError("--metric needs labels; name them with --data")
        kind = "classes" if self.data is None else kind_of_labels(self.data)
        return SCORES[kind] if self.metric is None else find_metric(self.metric).for_labels(kind)


@dataclass(frozen=True)
class TrialOptions(JudgeOptions):
    """Options for trying settings of a model, with the fields of `JudgeOptions`.

    With several jobs, processes import the calling program, which must not start the trials on import.

    Attributes:
        widths: Bits to try (default: all that the target supports).
        in_float: True to compare the outputs with the model in floating point instead of the unchanged model; for
            sensitivity, floating point is also the widest setting.
        jobs: Number of processes; results do not depend on it.
        scheduler: Address of a dask scheduler with workers to use instead of processes (extra `cluster`).
        results: File that stores each result; results that are in the file are not computed again.
    """

    widths: tuple[int, ...] = ()
    in_float: bool = False
    jobs: int = 1
    scheduler: str | None = None
    results: Path | None = None


@dataclass(frozen=True)
class Subject:
    """A model with the samples that judge it.

    Attributes:
        model: Unchanged model.
        ranged: Main graph with ranges for the target.
        samples: All samples that the user named.
        labels: Labels of the samples, or None.
        target: Target and merged settings.
        options: Options of the user.
        recovering: Recovery of every setting before it is judged; None to round to nearest.
    """

    model: Model
    ranged: Graph
    samples: Samples
    labels: Labels | None
    target: TargetOptions
    options: TrialOptions
    recovering: Recovering | None = None

    def problem(self, span: Span | None) -> Problem:
        """Return the problem for some of the samples.

        Raises:
            InputError: Fewer samples than the span.
            OptionError, UnsupportedError: As for `make_problem`.
        """
        taken = span or Span(0, self.samples.count)
        return make_problem(
            self.model,
            self.ranged,
            self.target.name or "",
            (self.target.settings, self.target.layers),
            taken.select(self.samples),
            None if self.labels is None else labels_in(taken, self.labels),
            against_float=self.options.in_float,
            widths=self.options.widths,
            recovering=self.recovering,
            metric=self.options.resolve_metric(),
        )

    def with_recovery(self, span: Span | None, options: RecoverySettings) -> Subject:
        """Return the network in floating point; every setting of it is recovered with some of the samples.

        Raises:
            InputError: Fewer samples than the span, or too few for a recovery.
        """
        network = dequantized(replace(self.model, graphs=[self.ranged, *self.model.graphs[1:]]))
        samples = RealSamples(self.samples, self.model.main, network.main)
        fitted, aside = split((span or Span(0, samples.count)).select(samples))
        recovering = Recovering(network, tuple(fitted.arrays), tuple(aside.arrays), options)
        return replace(self, model=network, ranged=network.main, samples=samples, recovering=recovering)


def with_labels(samples: SampleSource, options: _Judged) -> tuple[SampleSource, _Judged]:
    """Return the samples and the options; labels of (x, y) are moved to the options."""
    source, labels = split_labels(samples, options.labels)
    return source, replace(options, labels=labels)


def read_subject(
    source: ModelSource,
    target: TargetOptions,
    samples: SampleSource,
    options: TrialOptions,
    progress: Progress,
    *spans: Span | None,
    recovers: bool = False,
) -> Subject:
    """Read a model and its samples; without named samples, draw the number of random samples that the spans need.

    Raises:
        UsageError: Labeled samples in addition to other samples; a metric without labels; a setting that requires a
            recovery, which this use case does not perform.
        InputError, OptionError, FormatError: A model, samples, ranges or a metric that do not fit.
    """
    options.resolve_metric()
    choose_target(target.name or "", target, recovers=recovers)
    model = read_model(source)
    ranged = calibrate(model, options.calibration, target=target.name, progress=progress).main
    most = max((span.stop for span in spans if span), default=DEFAULT_SAMPLES)
    opened = open_samples(model, samples, labels=options.labels, data=options.data, count=most)
    return Subject(model, ranged, opened.samples, opened.labels, target, options)


@contextmanager
def open_evaluator(problem: Problem, options: TrialOptions, progress: Progress) -> Iterator[Evaluator]:
    """Yield an evaluator of trials, with the workers and the results file of the options."""
    kept = ResultsFile(options.results, problem.digest)
    with open_workers(partial(evaluate, problem), options.jobs, options.scheduler) as run:
        yield Evaluator(problem, run, kept, progress)

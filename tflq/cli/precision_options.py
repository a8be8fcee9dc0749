"""The options of the commands that try many settings of one model: `sensitivity` and `search`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tflq.cli import output
from tflq.cli.calibration_options import CalibrationChoice, calibrated
from tflq.cli.common import INPUT_HELP, choose_samples, read_model

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tflq.analysis.inputs import Samples
    from tflq.graph import Graph, Model
    from tflq.precision.evaluator import Evaluator
    from tflq.precision.problem import Problem

_Function = TypeVar("_Function", bound=Callable[..., Any])  # click's own type for decorated functions

DEFAULT_SAMPLES = 64


@dataclass(frozen=True)
class Span:
    """Samples start..stop-1."""

    start: int
    stop: int

    def __str__(self) -> str:
        return f"{self.start}:{self.stop}"


def read_span(ctx: click.Context, param: click.Parameter, text: str | None) -> Span | None:
    """Read START:STOP, or STOP alone for 0:STOP, as an option's callback."""
    if text is None:
        return None
    first, colon, last = text.partition(":")
    start, stop = (first, last) if colon else ("0", first)
    if not (start.isdecimal() and stop.isdecimal() and int(start) < int(stop)):
        raise click.BadParameter(f"'{text}' is no range; write START:STOP, as 0:500, or STOP alone", ctx, param)
    return Span(int(start), int(stop))


@dataclass(frozen=True)
class TrialChoice:
    """What the user asked.

    Attributes:
        data: [TASK=]DIR with labels, or None.
        inputs: files as for --input.
        real: whether their numbers are real.
        seed: of random samples.
        span: which of the samples; None for all.
        widths: only these bits; empty for all.
        jobs: processes.
        scheduler: address of a dask scheduler, or None.
        results: file that results are kept in, or None.
    """

    data: str | None
    inputs: tuple[str, ...]
    real: bool
    seed: int
    span: Span | None
    widths: tuple[int, ...]
    jobs: int
    scheduler: str | None
    results: Path | None


@dataclass(frozen=True)
class Subject:
    """A model with the samples that judge it.

    Attributes:
        model: as it is.
        ranged: its main graph, with ranges for the target.
        samples: all that the user named.
        labels: their classes, or None.
    """

    model: Model
    ranged: Graph
    samples: Samples
    labels: NDArray[np.int64] | None

    def problem(
        self,
        target: str,
        settings: tuple[tuple[str, ...], tuple[str, ...]],
        span: Span | None,
        choice: TrialChoice,
        against_float: bool = False,
    ) -> Problem:
        """Return the problem for some of the samples.

        Raises:
            InputError: there are not so many samples.
            OptionError, UnsupportedError: as `make_problem`.
        """
        from tflq.analysis.inputs import GivenSamples
        from tflq.errors import InputError
        from tflq.precision.problem import make_problem

        taken = span or Span(0, self.samples.count)
        if taken.stop > self.samples.count:
            raise InputError(f"samples {taken} were asked for; there are 0:{self.samples.count}")
        samples = GivenSamples(self.samples.take(taken.start, taken.stop))
        labels = None if self.labels is None else self.labels[taken.start : taken.stop]
        return make_problem(
            self.model,
            self.ranged,
            target,
            settings,
            samples,
            labels,
            against_float=against_float,
            widths=choice.widths,
        )


def read_subject(path: str, choice: TrialChoice, calibration: CalibrationChoice, most: int) -> Subject:
    """Read the model and its samples.

    Args:
        path: of the model.
        choice: names the samples.
        calibration: gives the model its ranges.
        most: how many random samples are needed, where no others are named.
    """
    model = read_model(path)
    ranged = calibrated(model, calibration, choice.real).main
    if choice.data is None:
        samples = choose_samples(model, choice.inputs, choice.real, most, choice.seed)
        return Subject(model, ranged, samples, None)
    if choice.inputs:
        raise click.UsageError("--data and --input both name samples; give one of them")
    return Subject(model, ranged, *_labelled(choice.data, model))


def _labelled(text: str, model: Model) -> tuple[Samples, NDArray[np.int64]]:
    from tflq.benchmarks.scoring import load_classified
    from tflq.benchmarks.tasks import find_task

    task, equals, folder = text.rpartition("=")
    data = load_classified(find_task(task) if equals else None, Path(folder), model.main)
    return data.samples, data.labels


@contextmanager
def open_evaluator(problem: Problem, choice: TrialChoice) -> Iterator[Evaluator]:
    """Yield what evaluates trials, with the workers and the file of results that were asked for."""
    from tflq.precision.evaluator import Evaluator
    from tflq.precision.results_file import ResultsFile
    from tflq.precision.workers import open_workers

    kept = ResultsFile(choice.results, problem.digest)
    with open_workers(problem, choice.jobs, choice.scheduler) as evaluate:
        yield Evaluator(problem, evaluate, kept, _progress)


@contextmanager
def _progress(what: str, total: int) -> Iterator[Callable[[int], object]]:
    with output.Bar(what, total) as bar:
        yield bar.advance


def trials(function: _Function) -> Callable[..., Any]:
    """Add the options of samples, widths and workers; the function gets them as `choice`."""

    @wraps(function)
    def command(
        *arguments: object,
        data: str | None,
        inputs: tuple[str, ...],
        real: bool,
        seed: int,
        span: Span | None,
        widths: tuple[int, ...],
        jobs: int | None,
        scheduler: str | None,
        results: Path | None,
        **others: object,
    ) -> object:
        workers = jobs or os.cpu_count() or 1
        choice = TrialChoice(data, inputs, real, seed, span, widths, workers, scheduler, results)
        return function(*arguments, choice=choice, **others)

    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def _widths(ctx: click.Context, param: click.Parameter, text: str | None) -> tuple[int, ...]:
    parts = [] if text is None else [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise click.BadParameter(f"'{text}' is no list of bits; write whole numbers with commas, as 4,6,8", ctx, param)
    return tuple(int(part) for part in parts)


_OPTIONS: tuple[Callable[[Callable[..., Any]], Callable[..., Any]], ...] = (
    click.option(
        "-d",
        "--data",
        metavar="[TASK=]DIR",
        help="Labelled samples: the data set of a task of `tflq bench`, or a folder with y_labels.csv whose files are "
        "as the model's input lies in memory.",
    ),
    click.option("-i", "--input", "inputs", multiple=True, metavar="[NAME=]FILE", help=INPUT_HELP),
    click.option("--real", is_flag=True, help="The samples of --input are real numbers."),
    click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of random samples."),
    click.option(
        "-n",
        "--samples",
        "span",
        callback=read_span,
        metavar="START:STOP",
        help=f"Which of the samples to use; all unless told. Without --data and --input {DEFAULT_SAMPLES} are random.",
    ),
    click.option("--widths", callback=_widths, metavar="BITS,BITS", help="Try only these bits, as 4,6,8."),
    click.option("-j", "--jobs", type=click.IntRange(min=1), help="Processes to use; one for each core unless told."),
    click.option(
        "--scheduler", metavar="tcp://HOST:PORT", help="Use the workers of this dask scheduler (extra `cluster`)."
    ),
    click.option(
        "--results",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Keep each result as it comes, and do not run again what is in the file.",
    ),
)

"""The problem that these tests share: the package's own model of digits, on a few of its images."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import product
from pathlib import Path

from tflq.api.demo import demo_model_path, demo_samples
from tflq.converters import tflite
from tflq.graph import Model
from tflq.precision.evaluate import Evaluator, evaluate
from tflq.precision.problem import Problem, make_problem
from tflq.precision.results_file import ResultsFile
from tflq.precision.trial import Result, Trial
from tflq.sampling import GivenSamples

Evaluate = Callable[[Sequence[Trial]], Iterable[Result]]

PINNED = ("0:weight_bits=8", "1:weight_bits=8")
"""Leaves four layers with a choice."""


@cache
def model() -> Model:
    return tflite.read_model(str(demo_model_path()))


def problem(
    count: int = 40,
    target: str = "gap9-ne16",
    rules: tuple[str, ...] = PINNED,
    widths: tuple[int, ...] = (),
    labeled: bool = True,
    against_float: bool = False,
) -> Problem:
    data = demo_samples(model().main)
    return make_problem(
        model(),
        model().main,
        target,
        ((), rules),
        GivenSamples(data.samples.take(0, count)),
        data.labels[:count] if labeled else None,
        against_float=against_float,
        widths=widths,
    )


SMALL_WIDTHS = (3, 4, 5)


@cache
def small() -> Problem:
    """Three layers with a choice of three widths, so that all settings can be tried."""
    return problem(60, rules=(*PINNED, "4:weight_bits=8"), widths=SMALL_WIDTHS)


@cache
def everything() -> dict[tuple[int, ...], Result]:
    """All 27 settings of the small problem."""
    return {bits: evaluate(small(), Trial(bits)) for bits in product(SMALL_WIDTHS, repeat=len(small().plan.layers))}


def write_labeled(folder: Path, count: int) -> Path:
    """Write images as the model's input lies in memory, and y_labels.csv; return the folder."""
    data = demo_samples(model().main)
    (images,) = data.samples.take(0, count)
    for number, image in enumerate(images):
        (folder / f"{number:02}.bin").write_bytes(image.tobytes())
    lines = (f"{n:02}.bin,10,{label}\n" for n, label in enumerate(data.labels[:count]))
    (folder / "y_labels.csv").write_text("".join(lines))
    return folder


@contextmanager
def silent(what: str, total: int) -> Iterator[Callable[[int], object]]:
    yield lambda count: None


def evaluator(of: Problem, run: Evaluate | None = None, kept: ResultsFile | None = None) -> Evaluator:
    here: Evaluate = lambda trials: (evaluate(of, trial) for trial in trials)  # noqa: E731
    return Evaluator(
        of, lambda trials: enumerate((run or here)(list(trials))), kept or ResultsFile(None, of.digest), silent
    )

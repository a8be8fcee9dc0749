"""The unchanged model and its targets: one row each, measured or refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.benchmarks.accuracy import predictions
from tflq.benchmarks.performance import SECONDS, Performance, time_inputs
from tflq.benchmarks.scoring import DataSet, Score, run_data, score
from tflq.benchmarks.significance import Paired, count_paired
from tflq.converters.settings import Settings
from tflq.converters.targets import Target
from tflq.errors import TflqError
from tflq.graph import Array, Model
from tflq.interpreter.runtimes import RuntimeName
from tflq.parallel.executions import Execution, as_is, for_target, spread


@dataclass(frozen=True)
class Candidate:
    """An execution to measure, or a refusal.

    Attributes:
        name: Name of the target or runtime; `executions.AS_IS` for the unchanged model.
        execution: Model in its arithmetic; None if the target refuses the model.
        refusal: Reason of the refusal.
    """

    name: str
    execution: Execution | None
    refusal: str = ""


@dataclass(frozen=True)
class Row:
    """Results of a candidate.

    Attributes:
        name: Name of the candidate.
        result: Score or times; None if the target refuses the model.
        refusal: Reason of the refusal.
        values: Results for each sample, real[S, values]; None in performance mode.
    """

    name: str
    result: Score | Performance | None
    refusal: str = ""
    values: Array | None = None


def candidates(
    model: Model,
    ranged: Model,
    targets: Sequence[tuple[Target, Settings]],
    keep_refused: bool,
    runtimes: Sequence[RuntimeName] = (),
) -> list[Candidate]:
    """Return the model in TFLite's reference kernels, in each runtime and for each target.

    Args:
        model: Unchanged model.
        ranged: Same model, with ranges if the user passed any.
        targets: Targets with their settings.
        keep_refused: True to turn a target's refusal into a row, False to raise the first one.
        runtimes: Other runtimes than TFLite's reference kernels.

    Raises:
        TflqError: A target refuses the model, its settings or its values.
    """
    rows = [Candidate("as is", as_is(model))]
    rows += [Candidate(name, as_is(model, runtime=name)) for name in runtimes]
    for target, settings in targets:
        try:
            rows.append(Candidate(target.name, for_target(ranged.main, target, settings)))
        except TflqError as error:
            if not keep_refused:
                raise
            rows.append(Candidate(target.name, None, str(error)))
    return rows


def pairs(rows: Sequence[Row], labels: NDArray[np.int64]) -> dict[str, Paired]:
    """Return name -> correct predictions of each row and of the first row, the reference, paired.

    Args:
        rows: Rows with the results of a classifier, reference first; rows without results are omitted.
        labels: True classes, int64[S].
    """
    right = {row.name: predictions(row.values) == labels for row in rows if row.values is not None}
    if rows[0].name not in right:
        return {}
    return {row.name: count_paired(right[row.name], right[rows[0].name]) for row in rows[1:] if row.name in right}


def measure_accuracy(
    chosen: Sequence[Candidate],
    data: DataSet,
    progress: Callable[[int], object] = lambda _: None,
    jobs: int = 1,
    scheduler: str | None = None,
) -> list[Row]:
    """Run all samples for each candidate, in `jobs` processes or a scheduler's workers (`spread`).

    `progress` is called with the number of samples just finished.
    """
    rows = []
    for candidate in chosen:
        if candidate.execution is None:
            rows.append(Row(candidate.name, None, candidate.refusal))
            continue
        with spread(candidate.execution, jobs, scheduler) as execution:
            values = run_data(execution, data, progress)
        rows.append(Row(candidate.name, score(candidate.name, values, data), values=values))
    return rows


def measure_performance(
    chosen: Sequence[Candidate],
    data: DataSet,
    seconds: float = SECONDS,
    progress: Callable[[int], object] = lambda _: None,
) -> list[Row]:
    """Time five inputs for each candidate, each for `seconds`; `progress` is called with 1 after each input."""
    return [
        Row(candidate.name, time_inputs(candidate.execution, data, seconds, progress))
        if candidate.execution is not None
        else Row(candidate.name, None, candidate.refusal)
        for candidate in chosen
    ]

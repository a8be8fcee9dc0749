"""One model as it is and for targets: a row for each, measured or refused."""

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
    """What is to be measured.

    Attributes:
        name: "as is" or the target's.
        execution: None where the target refuses the model.
        refusal: its reason.
    """

    name: str
    execution: Execution | None
    refusal: str = ""


@dataclass(frozen=True)
class Row:
    """What was measured.

    Attributes:
        name: of the candidate.
        found: None where the target refuses the model.
        refusal: its reason.
        values: what was answered to each sample, real[S, values]; None in performance mode.
    """

    name: str
    found: Score | Performance | None
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
        model: as it is.
        ranged: the same model with ranges, where the user gave any.
        targets: with their settings.
        runtimes: Other runtimes than TFLite's reference kernels.
        keep_refused: turn a target's refusal into a row; without it the first one is raised.

    Raises:
        TflqError: a target refuses the model, its settings or its values.
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
    """Return name -> the right answers of each row beside those of the first one, which are its reference.

    Args:
        rows: with the answers of a classifier, the first one's as well; others are left out.
        labels: int64[S].
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
    """Run all samples for each candidate, in so many processes or a scheduler's workers (`spread`).

    `progress` gets the number of samples just finished.
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
    """Time five inputs for each candidate, each for `seconds`; `progress` gets 1 after each input."""
    return [
        Row(candidate.name, time_inputs(candidate.execution, data, seconds, progress))
        if candidate.execution is not None
        else Row(candidate.name, None, candidate.refusal)
        for candidate in chosen
    ]

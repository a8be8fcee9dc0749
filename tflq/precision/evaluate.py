"""Trials: one quantised, run and counted; batches of them, of which those kept are not run again."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tflq.analysis.compare.tally import sqnr_db
from tflq.analysis.executions import all_outputs, for_target
from tflq.analysis.inputs import GivenSamples
from tflq.analysis.metrics import figure_of
from tflq.analysis.workers import Run
from tflq.arrays import Doubles
from tflq.converters.precision import find_mixed_precision
from tflq.errors import OptionError, UnsupportedError
from tflq.precision.exchange import exchanged
from tflq.precision.problem import Problem
from tflq.precision.results_file import ResultsFile
from tflq.precision.trial import Floating, Result, Trial

_DECIMALS = 6
"""Of a ratio in dB: sums of squares may differ in their last bits from one processor to the next."""


def evaluate(problem: Problem, trial: Trial) -> Result:
    """Return what a trial gives; it depends on nothing but its arguments.

    right counts the samples whose class is among the metric's highest outputs, the lowest index first on ties; another
    metric gives its score. A setting that the target refuses is a result, too: a search goes on without it.

    Raises:
        InputError: a metric of the user's failed.
    """
    try:
        outputs = _outputs(problem, trial)
    except (UnsupportedError, OptionError) as error:
        return Result(trial, problem.count, None, math.nan, str(error))
    return _score(problem, trial, outputs)


def right_samples(problem: Problem, trial: Trial) -> NDArray[np.bool_]:
    """Return which samples a trial has right, bool[S], by a metric that is a share of right answers.

    Raises:
        UnsupportedError, OptionError: the target refuses the setting.
    """
    assert isinstance(problem.labels, np.ndarray)
    return problem.metric.right(_outputs(problem, trial), problem.labels)


def reference_result(problem: Problem) -> Result:
    """Return what the reference gives, as the result of the widest trial."""
    return _score(problem, Trial(problem.widest), problem.reference)


def _score(problem: Problem, trial: Trial, outputs: Doubles) -> Result:
    metric, labels, right, score = problem.metric, problem.labels, None, None
    if isinstance(labels, np.ndarray) and metric.k:
        right = int(np.count_nonzero(metric.right(outputs, labels)))
    elif labels is not None:
        score = figure_of(metric, outputs, labels, problem.reference)
    signal, noise = (float(np.square(x).sum()) for x in (problem.reference, outputs - problem.reference))
    return Result(trial, problem.count, right, round(sqnr_db(signal, noise), _DECIMALS), score=score)


def _outputs(problem: Problem, trial: Trial) -> Doubles:
    target = find_mixed_precision(problem.target)
    settings = problem.settings(trial)
    if problem.recovering is None:
        execution = for_target(problem.graph, target, settings)
    else:
        widths = {layer.index: bits for layer, bits in zip(problem.plan.layers, trial.bits, strict=True)}
        execution = problem.recovering.execution(target, settings, widths)
    samples = GivenSamples(problem.samples)
    if trial.floating is Floating.NONE:
        return all_outputs(execution, samples)
    name = problem.plan.layers[trial.layer].name
    return exchanged(execution, problem.graph, name, samples, is_float_outside=trial.floating is Floating.OTHERS)


Advance = Callable[[int], object]
Progress = Callable[[str, int], AbstractContextManager[Advance]]
"""Called with what is done and how many trials it takes; what it yields is called with those that are finished."""


@dataclass
class Evaluator:
    """Answers for one problem.

    Attributes:
        problem: what trials are of.
        evaluate: runs them, from `open_workers`.
        kept: results of earlier runs, and where new ones go.
        progress: shows how far a batch is.
        results: all that was asked for so far, by trial.
        evaluated: how many of them were run now, and not known before.
    """

    problem: Problem
    evaluate: Run[Trial, Result]
    kept: ResultsFile
    progress: Progress
    results: dict[Trial, Result] = field(default_factory=dict)
    evaluated: int = 0

    def all(self, what: str, trials: Sequence[Trial]) -> list[Result]:
        """Return the results of trials in their order; each is run once at most."""
        asked = [trial for trial in dict.fromkeys(trials) if trial not in self.results]
        known = {trial: result for trial in asked if (result := self.kept.find(trial)) is not None}
        self.results.update(known)
        missing = [trial for trial in asked if trial not in known]
        with self.progress(what, len(missing)) as advance:
            for _, result in self.evaluate(missing):
                self.kept.add(result)
                self.results[result.trial] = result
                self.evaluated += 1
                advance(1)
        return [self.results[trial] for trial in trials]

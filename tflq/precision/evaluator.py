"""Evaluates batches of trials: what is kept is not run again, and what is run is kept at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from tflq.analysis.workers import Run
from tflq.precision.problem import Problem
from tflq.precision.results_file import ResultsFile
from tflq.precision.trial import Result, Trial

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

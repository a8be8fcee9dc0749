"""The smallest mixed precision that keeps what is required (docs/search.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tflq.converters.precision import PrecisionPlan
from tflq.precision.candidates import Bits, NoiseModel, exchanges, noise_model, path
from tflq.precision.evaluator import Evaluator
from tflq.precision.problem import Problem
from tflq.precision.sensitivity import alone
from tflq.precision.trial import Requirement, Result, Trial

BATCH = 32
"""Exchanges that are tried together; the same for any number of workers, so that the answer is, too."""

_BATCHES_WITHOUT_SUCCESS = 4
_DOUBT = 1.3
"""Exchanges are tried where their predicted noise is at most so many times what is allowed: predictions are rough."""


@dataclass(frozen=True)
class Point:
    """A setting that was tried.

    Attributes:
        size_bytes: as the plan counts.
        result: what it gave; its trial has the bits.
        is_uniform: whether every layer has the same bits, as far as it offers them.
        is_pareto: whether no other one is as small and better, or as good and smaller.
    """

    size_bytes: int
    result: Result
    is_uniform: bool
    is_pareto: bool

    @property
    def bits(self) -> Bits:
        """Of each layer of the plan."""
        return self.result.trial.bits


@dataclass(frozen=True)
class PrecisionSearch:
    """What was found.

    Attributes:
        target: name.
        plan: the layers and their choices.
        requirement: what was asked.
        slack_db: how much noisier than the first setting found an exchange might be.
        least_sqnr_db: the ratio that the slack left to exchanges; None where nothing keeps the requirement.
        samples: number of samples.
        points: all settings that were tried and not refused, the smallest first.
        chosen: the smallest that keeps the requirement; None where none does.
        evaluated: trials that were run now.
        known: trials whose results were kept from an earlier run.
    """

    target: str
    plan: PrecisionPlan
    requirement: Requirement
    slack_db: float
    least_sqnr_db: float | None
    samples: int
    points: tuple[Point, ...]
    chosen: Point | None
    evaluated: int
    known: int

    @property
    def best(self) -> Point | None:
        """The one that comes nearest to the requirement; None where the target refused all."""
        return max(self.points, key=lambda p: (*_quality(self.requirement, p.result), -p.size_bytes), default=None)

    @property
    def pareto(self) -> tuple[Point, ...]:
        """The points that no other one beats, the smallest first."""
        return tuple(point for point in self.points if point.is_pareto)

    @property
    def uniform(self) -> tuple[Point, ...]:
        """The points where all layers have the same bits."""
        return tuple(point for point in self.points if point.is_uniform)


def search(evaluator: Evaluator, requirement: Requirement, slack_db: float = 3.0) -> PrecisionSearch:
    """Search; the answer depends on the problem, the requirement and the slack alone.

    1. Every layer alone at every width gives the noise that it adds. 2. From the widest to the narrowest, the layer
    that adds least noise per byte is narrowed next; the smallest setting on the way that keeps the requirement is the
    first found. 3. Exchanges between two layers make it smaller, as long as they keep the requirement and at most
    `slack_db` more noise than the first found.

    Args:
        evaluator: of a problem; its reference is what the ratio of signal to noise compares with.
        requirement: what to keep.
        slack_db: 0 for no more noise at all, inf to let the requirement alone decide.
    """
    problem = evaluator.problem
    uniform = [Trial(problem.uniform(width.bits)) for layer in problem.plan.layers for width in layer.widths]
    rows = [[(w.bits, alone(problem, i, w.bits)) for w in x.widths[1:]] for i, x in enumerate(problem.plan.layers)]
    evaluator.all("sensitivity", [Trial(problem.widest), *uniform, *(trial for row in rows for _, trial in row)])
    results = evaluator.results
    model = noise_model(
        problem.plan.layers,
        results[Trial(problem.widest)].noise_ratio,
        [{bits: results[trial].noise_ratio for bits, trial in row} for row in rows],
    )
    evaluator.all("path", [Trial(bits) for bits in path(model)])
    first = _smallest(problem, requirement, list(results.values()), math.inf)
    if first is None:
        return _report(evaluator, requirement, slack_db, None, None)
    chosen = _exchanged(evaluator, requirement, model, first, slack_db)
    return _report(evaluator, requirement, slack_db, first.sqnr_db - slack_db, chosen)


def _exchanged(
    evaluator: Evaluator, requirement: Requirement, model: NoiseModel, first: Result, slack_db: float
) -> Result:
    """Exchange bits between layers until none of the exchanges is smaller and good enough."""
    most_noise = first.noise_ratio * 10.0 ** (slack_db / 10.0)
    chosen, better = first, _better(evaluator, requirement, model, first, most_noise)
    while better is not None:
        chosen, better = better, _better(evaluator, requirement, model, better, most_noise)
    return chosen


def _better(
    evaluator: Evaluator, requirement: Requirement, model: NoiseModel, start: Result, most_noise: float
) -> Result | None:
    bits = start.trial.bits
    correction = model.predict(bits) / start.noise_ratio if start.noise_ratio > 0.0 else 1.0
    near = exchanges(model, bits, most_noise * correction * _DOUBT)
    for begin in range(0, min(len(near), BATCH * _BATCHES_WITHOUT_SUCCESS), BATCH):
        tried = evaluator.all("exchanges", [Trial(other) for other in near[begin : begin + BATCH]])
        found = _smallest(evaluator.problem, requirement, tried, most_noise)
        if found is not None:
            return found
    return None


def _smallest(problem: Problem, requirement: Requirement, results: list[Result], most_noise: float) -> Result | None:
    good = [r for r in results if requirement.holds(r) and r.noise_ratio <= most_noise]
    return min(good, key=lambda r: (problem.size_bytes(r.trial.bits), r.noise_ratio, r.trial.bits), default=None)


def _quality(requirement: Requirement, result: Result) -> tuple[float, float]:
    """Return what is compared: accuracy where it is required, then the ratio of signal to noise."""
    accuracy = result.accuracy_percent
    return (0.0 if requirement.accuracy_percent is None or accuracy is None else accuracy, result.sqnr_db)


def _report(
    evaluator: Evaluator,
    requirement: Requirement,
    slack_db: float,
    least_sqnr_db: float | None,
    chosen: Result | None,
) -> PrecisionSearch:
    problem, results = evaluator.problem, evaluator.results
    points = _points(problem, requirement, [r for r in results.values() if not r.refused])
    return PrecisionSearch(
        problem.target,
        problem.plan,
        requirement,
        slack_db,
        least_sqnr_db,
        problem.count,
        points,
        next((p for p in points if p.result == chosen), None),
        evaluator.evaluated,
        len(results) - evaluator.evaluated,
    )


def _points(problem: Problem, requirement: Requirement, results: list[Result]) -> tuple[Point, ...]:
    """Return the points in order of size, the better first; one is on the Pareto front if it beats all before it."""

    def order(result: Result) -> tuple[int, float, float, Bits]:
        accuracy, ratio = _quality(requirement, result)
        return problem.size_bytes(result.trial.bits), -accuracy, -ratio, result.trial.bits

    found, best = [], -math.inf
    for result in sorted(results, key=order):
        bits = result.trial.bits
        accuracy, ratio = _quality(requirement, result)
        score = ratio if requirement.accuracy_percent is None else accuracy
        found.append(Point(problem.size_bytes(bits), result, bits == problem.uniform(max(bits)), score > best))
        best = max(best, score)
    return tuple(found)

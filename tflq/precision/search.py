"""The cheapest mixed precision that keeps what is required (docs/guides/search.md).

The accuracy for a ratio of signal to noise is the nondecreasing function nearest to the results of many settings.

The chosen setting is compared with others sample by sample (docs/guides/search.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from tflq.benchmarks.significance import Paired, count_paired, wilson_percent
from tflq.converters.estimate import Figure
from tflq.converters.precision import PrecisionPlan
from tflq.precision.candidates import NoiseModel, exchanges, noise_model, path
from tflq.precision.evaluate import Evaluator, right_samples
from tflq.precision.objective import Objective, objective_of
from tflq.precision.problem import Problem
from tflq.precision.strategy import Proposal, Steps, follow
from tflq.precision.trial import Bits, Requirement, Result, Trial


def rising(pairs: Sequence[tuple[float, float]]) -> list[float]:
    """Return the values of the function that never falls and has the least squared differences from the given ones.

    Neighbors that fall are pooled into their mean until none falls (the pool-adjacent-violators algorithm: Ayer and
    others, Annals of Mathematical Statistics 26, 1955).

    Args:
        pairs: (place, value); places may be equal, and then share a value.

    Returns:
        A value for each pair, in their order.
    """
    pools: list[tuple[float, list[int]]] = []
    for place in sorted({place for place, _ in pairs}):
        members = [i for i, (other, _) in enumerate(pairs) if other == place]
        total = sum(pairs[i][1] for i in members)
        while pools and pools[-1][0] / len(pools[-1][1]) >= total / len(members):
            more, others = pools.pop()
            members, total = others + members, more + total
        pools.append((total, members))
    found = [0.0] * len(pairs)
    for total, members in pools:
        for i in members:
            found[i] = total / len(members)
    return found


BATCH = 32
"""Exchanges that are tried together; the same for any number of workers, so that the answer is, too."""

_BATCHES_WITHOUT_SUCCESS = 4
_DOUBT = 1.3
"""Exchanges are tried where their predicted noise is at most so many times what is allowed: predictions are rough."""


_Answer = TypeVar("_Answer")
_Steps = Steps[Trial, Result, _Answer]


@dataclass(frozen=True)
class Point:
    """A setting that was tried.

    Attributes:
        size_bytes: as the plan counts.
        cost: what the search makes small, with what that figure is worth.
        result: what it gave; its trial has the bits.
        is_uniform: whether every layer has the same bits, as far as it offers them.
        is_pareto: whether no other one costs as little and is better, or is as good and costs less.
    """

    size_bytes: int
    cost: Figure
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
        objective: what was made small.
        requirement: what to keep.
        slack_db: how much noisier than the first setting found an exchange might be.
        least_sqnr_db: the ratio that the slack left to exchanges; None where nothing keeps the requirement.
        samples: number of samples.
        points: all settings that were tried and not refused, the cheapest first.
        chosen: the cheapest that keeps the requirement; None where none does.
        evaluated: trials that were run now.
        known: trials whose results were kept from an earlier run.
    """

    target: str
    plan: PrecisionPlan
    objective: Objective
    requirement: Requirement
    slack_db: float
    least_sqnr_db: float | None
    samples: int
    points: tuple[Point, ...]
    chosen: Point | None
    evaluated: int = 0
    known: int = 0

    @property
    def best(self) -> Point | None:
        """The one that comes nearest to the requirement; None where the target refused all."""
        return max(self.points, key=self._nearness, default=None)

    def _nearness(self, point: Point) -> tuple[float, ...]:
        return (*_quality(self.requirement, point.result), -self.objective.costs.of(point.bits))

    @property
    def uniform(self) -> tuple[Point, ...]:
        """The points where all layers have the same bits."""
        return tuple(point for point in self.points if point.is_uniform)

    @property
    def cheapest_uniform(self) -> Point | None:
        """The cheapest of them that keeps the requirement; None where none does."""
        return next((point for point in self.uniform if self.requirement.holds(point.result)), None)


def search(
    evaluator: Evaluator, requirement: Requirement, slack_db: float = 3.0, objective: Objective | None = None
) -> PrecisionSearch:
    """Search for the cheapest setting that keeps a requirement, as `Cheapest` does; by bytes unless told."""
    problem = evaluator.problem
    strategy = Cheapest(problem, objective or objective_of(problem), requirement, slack_db)
    found = follow(strategy, evaluator.all)
    return replace(found, evaluated=evaluator.evaluated, known=len(evaluator.results) - evaluator.evaluated)


@dataclass
class Cheapest:
    """The strategy; its answer depends on its fields alone.

    1. Every layer alone at every width gives the noise that it adds. 2. From the widest to the narrowest, the layer
    that adds least noise for what it saves is narrowed next; the cheapest setting on the way that keeps the
    requirement is the first found. 3. Exchanges between two layers make it cheaper, as long as they keep the
    requirement and at most `slack_db` more noise than the first found.

    Settings that are recovered all come near to what is required, and among many one keeps an accuracy by chance. There
    the accuracy that a setting's ratio is worth (`isotonic.rising`, of all that was tried) must keep it, too, and there
    are no exchanges.

    Attributes:
        problem: its reference is what the ratio of signal to noise compares with.
        objective: what to make small.
        requirement: what to keep.
        slack_db: 0 for no more noise at all, inf to let the requirement alone decide.
        results: what it was told.
    """

    problem: Problem
    objective: Objective
    requirement: Requirement
    slack_db: float
    results: dict[Trial, Result] = field(default_factory=dict)

    def steps(self) -> _Steps[PrecisionSearch]:
        """Try each layer alone, the path from the widest to the narrowest, then exchanges."""
        model = yield from self._noise()
        yield from self._tried("path", path(model))
        tried = list(self.results.values())
        if self.problem.recovering is not None:
            return self._report(None, self._cheapest(self._expected(tried), math.inf))
        first = self._cheapest(tried, math.inf)
        if first is None:
            return self._report(None, None)
        chosen = yield from self._exchanged(model, first)
        return self._report(first.sqnr_db - self.slack_db, chosen)

    def _expected(self, results: list[Result]) -> list[Result]:
        """Return the results whose ratio is worth the score that is required."""
        required = self.requirement
        if required.score is None:
            return results
        least = required.metric.worth(required.score)
        known = [r for r in results if r.value is not None]
        worth = rising([(r.sqnr_db, required.worth(r)) for r in known])
        return [r for r, value in zip(known, worth, strict=True) if value >= least]

    def _tried(self, what: str, settings: Sequence[Bits]) -> _Steps[list[Result]]:
        trials = [Trial(bits) for bits in settings]
        found = yield Proposal(what, trials)
        self.results.update(zip(trials, found, strict=True))
        return list(found)

    def _noise(self) -> _Steps[NoiseModel]:
        problem = self.problem
        layers = problem.plan.layers
        uniform = [problem.uniform(width.bits) for layer in layers for width in layer.widths]
        rows = [{w.bits: problem.alone(i, w.bits) for w in layer.widths[1:]} for i, layer in enumerate(layers)]
        singles = [bits for row in rows for bits in row.values()]
        yield from self._tried("sensitivity", [problem.widest, *uniform, *singles])
        base = self.results[Trial(problem.widest)].noise_ratio
        noise = [{bits: self.results[Trial(alone)].noise_ratio for bits, alone in row.items()} for row in rows]
        return noise_model(self.objective.costs, base, noise)

    def _exchanged(self, model: NoiseModel, first: Result) -> _Steps[Result]:
        """Exchange bits between layers until none of the exchanges is cheaper and good enough."""
        most_noise = first.noise_ratio * 10.0 ** (self.slack_db / 10.0)
        chosen, better = first, (yield from self._better(model, first, most_noise))
        while better is not None:
            chosen, better = better, (yield from self._better(model, better, most_noise))
        return chosen

    def _better(self, model: NoiseModel, start: Result, most_noise: float) -> _Steps[Result | None]:
        bits = start.trial.bits
        correction = model.predict(bits) / start.noise_ratio if start.noise_ratio > 0.0 else 1.0
        near = exchanges(model, bits, most_noise * correction * _DOUBT)
        for begin in range(0, min(len(near), BATCH * _BATCHES_WITHOUT_SUCCESS), BATCH):
            tried = yield from self._tried("exchanges", near[begin : begin + BATCH])
            found = self._cheapest(tried, most_noise)
            if found is not None:
                return found
        return None

    def _cheapest(self, results: list[Result], most_noise: float) -> Result | None:
        good = [r for r in results if self.requirement.holds(r) and r.noise_ratio <= most_noise]
        cost = self.objective.costs.of
        return min(good, key=lambda r: (cost(r.trial.bits), r.noise_ratio, r.trial.bits), default=None)

    def _report(self, least_sqnr_db: float | None, chosen: Result | None) -> PrecisionSearch:
        problem = self.problem
        results = [result for result in self.results.values() if not result.refused]
        points = _points(problem, self.objective, self.requirement, results)
        return PrecisionSearch(
            problem.target,
            problem.plan,
            self.objective,
            self.requirement,
            self.slack_db,
            least_sqnr_db,
            problem.count,
            points,
            next((p for p in points if p.result == chosen), None),
        )


def _quality(requirement: Requirement, result: Result) -> tuple[float, float]:
    """Return what is compared, more being better: the metric where it is required, then the ratio in dB."""
    return (0.0 if requirement.score is None else requirement.worth(result), result.sqnr_db)


def _points(
    problem: Problem, objective: Objective, requirement: Requirement, results: list[Result]
) -> tuple[Point, ...]:
    """Return the points in order of cost, the better first; one is on the Pareto front if it beats all before it."""

    def order(result: Result) -> tuple[float, float, float, Bits]:
        worth, ratio = _quality(requirement, result)
        return objective.costs.of(result.trial.bits), -worth, -ratio, result.trial.bits

    found, best = [], -math.inf
    for result in sorted(results, key=order):
        bits = result.trial.bits
        worth, ratio = _quality(requirement, result)
        score = ratio if requirement.score is None else worth
        is_uniform = bits == problem.uniform(max(bits))
        found.append(Point(problem.size_bytes(bits), objective.figure(bits), result, is_uniform, score > best))
        best = max(best, score)
    return tuple(found)


@dataclass(frozen=True)
class Beside:
    """The chosen setting beside another one on the same samples.

    Attributes:
        what: the other one is, in words.
        point: the other one.
        pair: right answers of the chosen setting, and of the other one.
    """

    what: str
    point: Point
    pair: Paired


def is_required_accuracy_within(requirement: Requirement, result: Result) -> bool:
    """Whether a required share of right answers lies in the 95 % interval of a result: luck may keep or miss it."""
    if requirement.score is None or result.right is None:
        return False
    low, high = wilson_percent(result.right, result.samples)
    return low <= requirement.score <= high


def beside_others(problem: Problem, found: PrecisionSearch) -> tuple[Beside, ...]:
    """Return the chosen setting beside the widest one, and beside the best of the cheaper ones that were turned down.

    The first pair says what narrowing has cost, the second whether the samples tell what was chosen from what was
    not. Both settings are run again; nothing without labels, a chosen setting or a metric that is a
    share of right answers.

    Args:
        problem: that was searched.
        found: its answer.
    """
    chosen = found.chosen
    if chosen is None or chosen.result.right is None:
        return ()
    cost = found.objective.costs.of
    cheaper = [p for p in found.points if cost(p.bits) < cost(chosen.bits) and not found.requirement.holds(p.result)]
    others = [("the widest", next((p for p in found.points if p.bits == problem.widest), None))]
    others.append(("the best that is cheaper and turned down", max(cheaper, key=_accuracy, default=None)))
    wanted = [(what, point) for what, point in others if point is not None and point != chosen]
    right = {point.bits: right_samples(problem, Trial(point.bits)) for point in (chosen, *(p for _, p in wanted))}
    return tuple(Beside(what, point, count_paired(right[chosen.bits], right[point.bits])) for what, point in wanted)


def _accuracy(point: Point) -> tuple[int, float]:
    return point.result.right or 0, point.result.sqnr_db

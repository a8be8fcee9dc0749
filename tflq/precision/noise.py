"""What the samples of a search tell apart: the chosen setting beside others, sample by sample (docs/search.md)."""

from __future__ import annotations

from dataclasses import dataclass

from tflq.analysis.significance import Paired, paired, wilson_percent
from tflq.precision.evaluate import right_samples
from tflq.precision.problem import Problem
from tflq.precision.search import Point, PrecisionSearch
from tflq.precision.trial import Requirement, Result, Trial


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
    return tuple(Beside(what, point, paired(right[chosen.bits], right[point.bits])) for what, point in wanted)


def _accuracy(point: Point) -> tuple[int, float]:
    return point.result.right or 0, point.result.sqnr_db

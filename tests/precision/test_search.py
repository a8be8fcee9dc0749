"""The search against trying everything, and what its answer may depend on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

import pytest

from tests.support.digits_problem import SMALL_WIDTHS, evaluator, everything, problem, small
from tflq.precision.search import PrecisionSearch, search
from tflq.precision.trial import Requirement, Result, Trial


def looked_up(trials: Sequence[Trial]) -> Iterator[Result]:
    return (everything()[trial.bits] for trial in trials)


@pytest.mark.parametrize(
    "requirement",
    [Requirement(score=100.0 * right / 60) for right in (54, 56, 57, 58)]
    + [Requirement(sqnr_db=ratio) for ratio in (8.0, 12.0, 15.0, 17.5, 20.0)]
    + [Requirement(score=95.0, sqnr_db=14.0)],
    ids=str,
)
def test_the_smallest_of_all_settings_is_found(requirement: Requirement) -> None:
    of = small()
    found = search(evaluator(of, looked_up), requirement, inf)
    good = [of.size_bytes(bits) for bits, result in everything().items() if requirement.holds(result)]
    assert found.chosen is not None
    assert found.chosen.size_bytes == min(good)
    assert requirement.holds(found.chosen.result)
    assert found.chosen.result == everything()[found.chosen.bits]


def test_the_front_is_what_no_other_point_beats() -> None:
    found = search(evaluator(small(), looked_up), Requirement(score=90.0), inf)
    for point in found.points:
        beaten = any(
            (other.size_bytes <= point.size_bytes and (other.result.right or 0) > (point.result.right or 0))
            or (other.size_bytes < point.size_bytes and other.result.right == point.result.right)
            for other in found.points
        )
        assert not (point.is_pareto and beaten)
        twin = any(
            p.is_pareto
            for p in found.points
            if (p.size_bytes, p.result.right) == (point.size_bytes, point.result.right)
        )
        assert beaten or twin
    assert [p.bits for p in found.uniform] == [(w,) * 3 for w in SMALL_WIDTHS]


def plain(found: PrecisionSearch) -> tuple[object, ...]:
    return found.chosen, found.points, found.least_sqnr_db


def test_the_answer_does_not_depend_on_the_order_in_which_results_come() -> None:
    requirement = Requirement(score=95.0)
    backwards = search(evaluator(small(), lambda trials: looked_up(list(trials)[::-1])), requirement)
    assert plain(backwards) == plain(search(evaluator(small(), looked_up), requirement))


def test_the_slack_bounds_the_noise() -> None:
    requirement = Requirement(score=93.0)
    sizes = []
    for slack in (0.0, 1.0, 3.0, inf):
        found = search(evaluator(small(), looked_up), requirement, slack)
        assert found.chosen is not None
        assert found.least_sqnr_db is not None
        assert found.chosen.result.sqnr_db >= found.least_sqnr_db - 1e-9
        sizes.append(found.chosen.size_bytes)
    assert sizes == sorted(sizes, reverse=True)


def test_what_cannot_be_reached_ends_in_the_best_found() -> None:
    found = search(evaluator(small(), looked_up), Requirement(sqnr_db=200.0))
    assert found.chosen is None
    assert found.best is not None
    most = max(result.right or 0 for result in everything().values())
    assert found.best.result.right == most


def test_a_refused_setting_is_passed_over() -> None:
    def narrow_refused(trials: Sequence[Trial]) -> Iterator[Result]:
        for trial in trials:
            refused = Result(trial, 60, None, float("nan"), "too narrow")
            yield refused if 3 in trial.bits else everything()[trial.bits]

    found = search(evaluator(small(), narrow_refused), Requirement(score=50.0), inf)
    assert found.chosen is not None
    assert found.chosen.bits == (4, 4, 4)
    assert all(3 not in point.bits for point in found.points)


def test_zhouyi_is_searched_too() -> None:
    of = problem(20, "aipu", ())
    found = search(evaluator(of), Requirement(score=90.0, sqnr_db=30.0))
    assert found.chosen is not None
    assert {width for point in found.points for width in point.bits} == {8, 16}
    assert found.chosen.size_bytes < of.size_bytes(of.widest)

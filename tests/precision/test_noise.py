"""What the samples tell of a search's choice: pairs are counted by sample, on what the settings really answer."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.digits_problem import evaluator, problem
from tflq.converters.targets import find_mixed_precision
from tflq.parallel.executions import all_outputs, for_target
from tflq.precision.problem import Problem
from tflq.precision.search import beside_others, is_required_accuracy_within, search
from tflq.precision.trial import Bits, Requirement, Result, Trial
from tflq.report.precision import judge_verification, noise_texts
from tflq.sampling import GivenSamples


def answers(of: Problem, bits: Bits) -> set[int]:
    """The samples that a setting has right."""
    execution = for_target(of.graph, find_mixed_precision(of.target), of.settings(Trial(bits)))
    found = all_outputs(execution, GivenSamples(of.samples))
    assert isinstance(of.labels, np.ndarray)
    return {n for n, label in enumerate(of.labels) if int(np.argmax(found[n])) == label}


def test_the_choice_beside_others() -> None:
    of = problem(80, rules=("0:weight_bits=8", "1:weight_bits=8", "4:weight_bits=8"), widths=(2, 3, 8))
    found = search(evaluator(of), Requirement(score=95.0))
    chosen = found.chosen
    assert chosen is not None
    beside = beside_others(of, found)
    assert [other.what for other in beside] == ["the widest", "the best that is cheaper and turned down"]
    assert beside[0].point.bits == of.widest
    for other in beside:
        mine, theirs = answers(of, chosen.bits), answers(of, other.point.bits)
        assert (other.pair.gained, other.pair.lost) == (len(mine - theirs), len(theirs - mine))
    turned_down = beside[1].point
    assert turned_down.size_bytes < chosen.size_bytes
    assert (turned_down.result.accuracy_percent or 0) < 95
    cheaper = [p for p in found.points if p.size_bytes < chosen.size_bytes and not found.requirement.holds(p.result)]
    assert turned_down.result.right == max(p.result.right or 0 for p in cheaper)
    texts = list(noise_texts(found, beside))
    assert texts[0].startswith("within the noise: 95 % is in the 95 % interval")
    assert f"({turned_down.result.right} right, {turned_down.size_bytes} bytes of weights): " in texts[2]


def test_without_labels_nothing_is_paired() -> None:
    of = problem(12, widths=(4, 8), labeled=False)
    found = search(evaluator(of), Requirement(sqnr_db=10.0))
    assert found.chosen is not None
    assert beside_others(of, found) == ()
    assert list(noise_texts(found, ())) == []
    assert found.chosen.result.interval_percent is None


@pytest.mark.parametrize(
    ("right", "required", "words"),
    [
        (447, 89.5, "NOT kept, within the noise"),
        (449, 89.5, "kept, within the noise"),
        (499, 89.5, "kept"),
        (300, 89.5, "NOT kept"),
        (447, None, "kept"),
    ],
)
def test_verdicts(right: int, required: float | None, words: str) -> None:
    result, requirement = Result(Trial((8,)), 500, right, 20.0), Requirement(score=required)
    assert judge_verification(requirement, result) == words
    assert is_required_accuracy_within(requirement, result) == words.endswith("noise")

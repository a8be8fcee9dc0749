"""What a search makes small: costs that add up to what the estimate says of the very setting."""

from __future__ import annotations

from functools import cache
from itertools import product
from math import inf

import numpy as np
import pytest

import tflq
from tests.support.data import data_path
from tests.support.digits_problem import SMALL_WIDTHS, evaluator, everything, problem, small
from tflq.converters import tflite
from tflq.converters.estimate import AT_LEAST, Estimate, Grade, lower_bound
from tflq.converters.targets import find_target
from tflq.errors import OptionError, UsageError
from tflq.parallel.executions import quantized
from tflq.precision.objective import OBJECTIVES, objective_of
from tflq.precision.problem import Problem, make_problem
from tflq.precision.search import search
from tflq.precision.trial import Bits, Requirement, Trial
from tflq.sampling import GivenSamples


@cache
def autoencoder() -> Problem:
    model = tflite.read_model(str(data_path("models", "ad01_int8.tflite")))
    samples = np.random.default_rng(5).integers(-128, 128, (2, 1, 640), np.int8)
    return make_problem(model, model.main, "gap9-ne16", ((), ()), GivenSamples((samples,)), None)


def estimated(of: Problem, bits: Bits) -> Estimate:
    """The estimate of one setting, quantized by itself."""
    target = find_target(of.target)
    assert not isinstance(target.estimate, str)
    return target.estimate(quantized(of.graph, target, of.settings(Trial(bits))))


def test_costs_are_those_of_the_very_setting() -> None:
    of, rng = autoencoder(), np.random.default_rng(7)
    cycles, energy = objective_of(of, "cycles"), objective_of(of, "energy")
    for _ in range(12):
        bits = tuple(int(rng.choice([w.bits for w in layer.widths])) for layer in of.plan.layers)
        found = estimated(of, bits)
        assert cycles.figure(bits) == found.cycles
        assert energy.figure(bits) == found.totals["energy at 0.80 V, 370 MHz"]
        assert round(found.cycles.value or 0, 6) == cycles.costs.of(bits)
        assert round(found.energy.value or 0, 6) == energy.costs.of(bits)
    assert (cycles.unit, energy.unit) == ("cycles", "uJ")
    assert cycles.costs.of(of.uniform(2)) < cycles.costs.of(of.widest)


def test_a_network_without_a_total_is_compared_by_its_lower_bound() -> None:
    of = small()
    objective = objective_of(of, "cycles")
    for bits in product(SMALL_WIDTHS, repeat=3):
        figure, found = objective.figure(bits), estimated(of, bits)
        assert figure.grade is Grade.LOWER_BOUND
        assert figure.value == lower_bound(found.layers).value == found.totals[AT_LEAST].value
        assert "MAX_POOL_2D_0_3: max_pool_2d on the cluster" in figure.basis
        assert round(figure.value or 0, 6) == objective.costs.of(bits)


@pytest.mark.parametrize("name", OBJECTIVES[:2])
@pytest.mark.parametrize("ratio", [8.0, 12.0, 15.0, 17.5])
def test_the_cheapest_of_all_settings_is_found(name: str, ratio: float) -> None:
    objective = objective_of(small(), name)
    requirement = Requirement(sqnr_db=ratio)
    looked_up = evaluator(small(), lambda trials: (everything()[trial.bits] for trial in trials))
    found = search(looked_up, requirement, inf, objective)
    assert found.chosen is not None
    good = [objective.costs.of(bits) for bits, result in everything().items() if requirement.holds(result)]
    assert objective.costs.of(found.chosen.bits) == min(good)
    prices = [objective.costs.of(point.bits) for point in found.points]
    assert prices == sorted(prices)


def test_what_has_no_figures_is_refused() -> None:
    with pytest.raises(OptionError, match=r"target aipu offers no cycles: .*allowed is --objective bytes"):
        objective_of(problem(4, "aipu", ()), "cycles")
    with pytest.raises(OptionError, match=r"energy is not offered: MAX_POOL_2D_0_3: .* --objective cycles compares"):
        objective_of(small(), "energy")
    with pytest.raises(UsageError, match="objective 'speed': allowed are bytes, cycles, energy"):
        tflq.SearchOptions(min_sqnr=3.0, objective="speed").check()
    wide = tflq.TargetOptions("gap9-ne16", ("feature_bits=16",))
    with pytest.raises(OptionError, match=r"layer '.*': no cycles are offered: 16-bit features"):
        tflq.search(data_path("models", "ad01_int8.tflite"), wide, min_sqnr=3.0, objective="cycles")

"""Each layer alone: in integers against the bench, in floating point against graphs that were cut."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.digits_problem import evaluator, model, problem
from tflq.api.demo import demo_samples
from tflq.benchmarks.accuracy import LabeledSamples, measure
from tflq.converters.settings import parse_settings
from tflq.converters.targets import find_target
from tflq.graph.cut import cut
from tflq.interpreter import Engine
from tflq.parallel.executions import for_target, in_float, real_values
from tflq.precision.evaluate import evaluate
from tflq.precision.problem import Problem
from tflq.precision.sensitivity import sensitivity
from tflq.precision.trial import Floating, Trial
from tflq.sampling import GivenSamples


def benched(of: Problem, *layers: str) -> int:
    """Count right answers as `tflq bench` does."""
    target = find_target(of.target)
    data = LabeledSamples(GivenSamples(of.samples), of.labels, 10)
    return measure(for_target(of.graph, target, parse_settings(target.settings, (), layers)), data).right


def test_each_layer_alone_is_what_the_bench_counts() -> None:
    of = problem(40, widths=(8, 4, 2))
    found = sensitivity(evaluator(of))
    assert found.widths == (4, 2)
    assert {base.right for base in found.bases.values()} == {benched(of)}
    for row in found.rows:
        for bits, result in row.results.items():
            assert result.right == benched(of, f"{row.layer.index}:weight_bits={bits}")


def test_each_layer_spared_is_what_the_bench_counts() -> None:
    of = problem(40, widths=(8, 3))
    found = sensitivity(evaluator(of), is_spared=True)
    assert found.widths == (3,)
    narrow = tuple(f"{row.layer.index}:weight_bits=3" for row in found.rows)
    pinned = ("0:weight_bits=8", "1:weight_bits=8")
    assert found.bases[3].right == benched(of, *pinned, *narrow)
    for row in found.rows:
        assert row.results[3].right == benched(of, *pinned, *narrow, f"{row.layer.index}:weight_bits=8")


def test_without_labels_there_are_ratios() -> None:
    found = sensitivity(evaluator(problem(10, widths=(8, 4), labeled=False)))
    for row in found.rows:
        assert row.results[4].right is None
        assert row.results[4].sqnr_db < found.bases[4].sqnr_db


def sqnr_db(of: Problem, outputs: NDArray[np.float64]) -> float:
    return round(float(10 * np.log10(np.square(of.reference).sum() / np.square(outputs - of.reference).sum())), 6)


def test_one_layer_in_integers() -> None:
    """The target's layer, cut out and fed with the float network's tensor; the rest of that fed with the result."""
    of = problem(12, widths=(8, 3), against_float=True)
    trial = Trial((8, 8, 8, 3), Floating.OTHERS, 3)
    execution, target = in_float(model()), find_target(of.target)
    whole, floating = for_target(of.graph, target, of.settings(trial)).graph, execution.graph
    theirs = next(n for n in floating.nodes if n.name == of.plan.layers[3].name)
    ours = next(n for n in whole.nodes if n.name == theirs.name)
    inner, behind = cut(whole, [ours.inputs[0]], [ours.outputs[0]]), cut(floating, [theirs.outputs[0]], [])
    before = execution.engine.run(execution.encode(list(of.samples)), [theirs.inputs[0]])[theirs.inputs[0]]
    source, result = inner.tensors[inner.inputs[0]], inner.tensors[inner.outputs[0]]
    codes = Engine(inner, target.arithmetic).run([target.encode(before.astype(np.float64), source)])[inner.outputs[0]]
    outputs = Engine(behind, "float").run([real_values(codes, result).astype(np.float32)])[behind.outputs[0]]
    found = evaluate(of, trial)
    assert found.refused == ""
    assert found.sqnr_db == sqnr_db(of, outputs.reshape(12, -1).astype(np.float64))
    assert found.right == int((outputs.reshape(12, -1).argmax(axis=1) == of.labels).sum())


def test_one_layer_in_floating_point() -> None:
    """The target without its first layer, fed with the float network's first tensor."""
    of = problem(12, rules=(), widths=(8, 3), against_float=True)
    trial = Trial((3,) * 6, Floating.THIS, 0)
    execution, target = in_float(model()), find_target(of.target)
    first = execution.graph.nodes[of.plan.layers[0].index]
    whole = for_target(of.graph, target, of.settings(trial)).graph
    second = next(n for n in whole.nodes if n.name == of.plan.layers[1].name)
    part = cut(whole, [second.inputs[0]], list(whole.outputs))
    before = execution.engine.run(execution.encode(list(of.samples)), [first.outputs[0]])[first.outputs[0]]
    codes = target.encode(before.astype(np.float64), part.tensors[part.inputs[0]])
    results = Engine(part, target.arithmetic).run([codes])[part.outputs[0]]
    outputs = real_values(results, part.tensors[part.outputs[0]]).reshape(12, -1)
    assert evaluate(of, trial).sqnr_db == sqnr_db(of, outputs)


@pytest.mark.parametrize("is_spared", [False, True])
def test_floating_point_takes_the_place_of_the_widest(is_spared: bool) -> None:
    of = problem(8, widths=(8, 2), against_float=True)
    found = sensitivity(evaluator(of), is_spared=is_spared)
    assert found.in_float
    assert found.widths == (8, 2)
    execution = in_float(model())
    data = demo_samples(model().main)
    right = measure(execution, LabeledSamples(GivenSamples(data.samples.take(0, 8)), data.labels[:8], 10)).right
    if not is_spared:
        assert all(base.right == right and base.sqnr_db == float("inf") for base in found.bases.values())
        assert all(row.results[8].sqnr_db > row.results[2].sqnr_db for row in found.rows)
    assert all(not result.refused for row in found.rows for result in row.results.values())

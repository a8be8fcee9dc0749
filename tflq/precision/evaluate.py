"""Trials: one quantized, run and counted; batches of them, of which those kept are not run again.

Runs a model in two arithmetics: one layer in the target's integers, all others in floating point, or the reverse.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tflq.arrays import Doubles
from tflq.benchmarks.metrics import figure_of
from tflq.converters.targets import find_mixed_precision
from tflq.diagnosis.compare.isolated import constants_of, encoded, require_separate_nodes, run_node
from tflq.diagnosis.compare.matching import match, segment
from tflq.diagnosis.compare.sides import Running
from tflq.diagnosis.compare.tally import sqnr_db
from tflq.errors import OptionError, UnsupportedError
from tflq.graph import Array, Graph, float_view
from tflq.interpreter import Engine
from tflq.parallel.executions import Execution, all_outputs, for_target, real_values
from tflq.parallel.workers import Run
from tflq.precision.problem import Problem
from tflq.precision.results_file import ResultsFile
from tflq.precision.trial import Floating, Result, Trial
from tflq.sampling import GivenSamples, Samples


@dataclass(frozen=True)
class _Part:
    """What computes one layer in one of two graphs, for the other.

    Attributes:
        nodes: of the inner graph, in order.
        inputs: (tensor of the inner graph, the same one of the outer graph).
        result: tensor that they write.
        place: the same one of the outer graph.
    """

    nodes: tuple[int, ...]
    inputs: tuple[tuple[int, int], ...]
    result: int
    place: int


def exchanged(execution: Execution, source: Graph, layer: str, samples: Samples, *, is_float_outside: bool) -> Doubles:
    """Run all samples and return the outputs as real numbers: float64[S, elements of all outputs].

    Where the arithmetic changes, values go by way of the real numbers that they stand for; the target rounds them to
    its quantized values.

    Args:
        execution: of the target.
        source: the graph that it was made from.
        layer: name of a node of `source`.
        samples: in the encoding of `source`.
        is_float_outside: whether the layer is the only one in integers; else it is the only one in floating point.

    Raises:
        UnsupportedError: the target's graph has no tensor that is the layer's output, or depends on values of the run.
    """
    floating = Execution("float", Engine(float_view(source), "float"), source)
    inner, outer = (execution, floating) if is_float_outside else (floating, execution)
    for side in (inner, outer):
        require_separate_nodes(side.graph, "")
    part = _part(inner, outer, _pairs(execution, floating, samples, is_float_outside), layer, floating.graph)
    return np.concatenate(list(_run(inner, outer, part, samples)))


def _pairs(
    execution: Execution, floating: Execution, samples: Samples, is_float_outside: bool
) -> tuple[tuple[int, int], ...]:
    """Return (tensor of the inner graph, tensor of the outer graph) for all that both have."""
    found = match(Running(execution, samples).columns, Running(floating, samples).columns).matches
    pairs = ((m.first.index, m.second.index) for m in found)
    return tuple(pair if is_float_outside else pair[::-1] for pair in pairs)


def _part(inner: Execution, outer: Execution, pairs: Sequence[tuple[int, int]], layer: str, floating: Graph) -> _Part:
    place = dict(pairs)
    is_inner_float = inner.graph is floating
    shared = {(i if is_inner_float else o): (i, o) for i, o in pairs}
    end = _end_of(floating, layer, shared.keys())
    if end is None:
        raise UnsupportedError(
            f"layer '{layer}': the target's graph has no tensor that is its output, so that it cannot be run apart"
        )
    result, after = shared[end]
    found = segment(inner.graph, result, place, None, {})
    before = _written_before(outer.graph, after)
    if any(place[t] not in before for t in found.inputs):
        raise UnsupportedError(f"layer '{layer}': the target computes its inputs elsewhere; it cannot be run apart")
    return _Part(found.nodes, tuple((t, place[t]) for t in found.inputs), result, after)


def _end_of(floating: Graph, layer: str, shared: Collection[int]) -> int | None:
    """Return the first tensor that both have from a layer on: behind what the target fuses with it, such as a pool."""
    readers = floating.consumers()
    waiting = [t for node in floating.nodes if node.name == layer for t in node.outputs]
    while len(waiting) == 1:
        if waiting[0] in shared:
            return waiting[0]
        following = readers.get(waiting[0], [])
        waiting = list(floating.nodes[following[0]].outputs) if len(following) == 1 else []
    return None


def _written_before(graph: Graph, tensor: int) -> set[int]:
    found = set(graph.inputs)
    for node in graph.nodes:
        if tensor in node.outputs:
            break
        found.update(node.outputs)
    return found


def _run(inner: Execution, outer: Execution, part: _Part, samples: Samples) -> Iterator[Doubles]:
    graph, step = outer.graph, outer.engine.chunk_size()
    for start in range(0, samples.count, step):
        inputs = samples.take(start, min(start + step, samples.count))
        values = constants_of(graph)
        values.update(zip(graph.inputs, outer.encode(inputs), strict=True))
        for node in graph.nodes:
            if all(graph.tensors[t].is_constant for t in node.outputs):
                continue
            values.update(run_node(node, values))
            if part.place in node.outputs:
                values[part.place] = _layer(inner, outer, part, values)
        reals = [real_values(values[t], graph.tensors[t]) for t in graph.outputs]
        yield np.concatenate([r.reshape(len(r), -1) for r in reals], axis=1)


def _layer(inner: Execution, outer: Execution, part: _Part, outside: dict[int, Array]) -> Array:
    """Compute the layer in the inner graph from values of the outer one, and return it in the outer encoding."""
    graph, values = inner.graph, constants_of(inner.graph)
    for mine, theirs in part.inputs:
        values[mine] = encoded(outside[theirs], outer.graph.tensors[theirs], graph.tensors[mine], inner.target)
    for index in part.nodes:
        values.update(run_node(graph.nodes[index], values))
    return encoded(values[part.result], graph.tensors[part.result], outer.graph.tensors[part.place], outer.target)


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

"""What each layer alone does to accuracy and outputs, at each of its widths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tflq.benchmarks.metrics import Metric
from tflq.converters.precision import LayerWidths
from tflq.precision.evaluate import Evaluator, reference_result
from tflq.precision.problem import Problem
from tflq.precision.trial import Floating, Result, Trial


@dataclass(frozen=True)
class LayerSensitivity:
    """One layer.

    Attributes:
        layer: with its widths.
        results: bits -> what came out.
    """

    layer: LayerWidths
    results: Mapping[int, Result]


@dataclass(frozen=True)
class Sensitivity:
    """All layers.

    Attributes:
        target: name.
        samples: number of samples.
        is_spared: whether each layer alone is left at its widest (or in floating point) and all others have the width;
            else each layer alone has the width, and all others are at their widest (or in floating point).
        in_float: whether floating point takes the place of the widest.
        bases: bits -> what the network gives without the layer's difference: all layers at those bits where it is
            spared, else one result for all bits.
        rows: in order of execution.
        metric: what labels are compared by.
        evaluated: trials that were run now.
        known: trials whose results were kept from an earlier run.
    """

    target: str
    samples: int
    is_spared: bool
    in_float: bool
    bases: Mapping[int, Result]
    rows: tuple[LayerSensitivity, ...]
    metric: Metric
    evaluated: int
    known: int

    @property
    def widths(self) -> tuple[int, ...]:
        """All bits that occur, the widest first."""
        return tuple(sorted({bits for row in self.rows for bits in row.results}, reverse=True))


def sensitivity(evaluator: Evaluator, *, is_spared: bool = False) -> Sensitivity:
    """Evaluate every layer at every width; in floating point where the problem's reference is."""
    problem = evaluator.problem
    asked = list(_trials(problem, is_spared))
    uniform = {bits: Trial(problem.uniform(bits)) for bits in sorted({b for _, b, _ in asked}, reverse=True)}
    bases = list(uniform.values()) if is_spared else [] if problem.in_float else [Trial(problem.widest)]
    evaluator.all("sensitivity", [*bases, *(trial for _, _, trial in asked)])
    results = evaluator.results
    rows: list[dict[int, Result]] = [{} for _ in problem.plan.layers]
    for position, bits, trial in asked:
        rows[position][bits] = results[trial]
    if is_spared:
        found = {bits: results[trial] for bits, trial in uniform.items()}
    else:
        base = reference_result(problem) if problem.in_float else results[Trial(problem.widest)]
        found = dict.fromkeys(uniform, base)
    return Sensitivity(
        problem.target,
        problem.count,
        is_spared,
        problem.in_float,
        found,
        tuple(LayerSensitivity(layer, row) for layer, row in zip(problem.plan.layers, rows, strict=True)),
        problem.metric,
        evaluator.evaluated,
        len(results) - evaluator.evaluated,
    )


def _trials(problem: Problem, is_spared: bool) -> Iterator[tuple[int, int, Trial]]:
    for position, layer in enumerate(problem.plan.layers):
        for bits in _compared_bits(layer, problem.in_float):
            if problem.in_float and is_spared:
                trial = Trial(problem.uniform(bits), Floating.THIS, position)
            elif problem.in_float:
                trial = Trial(problem.alone(position, bits), Floating.OTHERS, position)
            elif is_spared:
                uniform = problem.uniform(bits)
                widest = layer.widths[0].bits
                trial = Trial((*uniform[:position], widest, *uniform[position + 1 :]))
            else:
                trial = Trial(problem.alone(position, bits))
            yield position, bits, trial


def _compared_bits(layer: LayerWidths, in_float: bool) -> Sequence[int]:
    """Return the bits that differ from what they are compared with: the widest counts against floating point only."""
    widths = layer.widths if in_float else layer.widths[1:]
    return [width.bits for width in widths]

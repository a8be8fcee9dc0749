"""One model for every target: files, score and similarity of each target, in one row each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tflq.benchmarks.accuracy import LabeledSamples, answers, measure, predictions
from tflq.converters.estimate import Figure
from tflq.converters.settings import parse_settings
from tflq.converters.targets import Target
from tflq.diagnosis.compare.comparison import compare_sides
from tflq.diagnosis.compare.sides import Running
from tflq.errors import InputError, TflqError
from tflq.graph import Graph, Model
from tflq.parallel.executions import Execution, for_target
from tflq.sampling import RandomSamples, Samples

COMPARED_SAMPLES = 64
"""Samples over which layers are compared: a ratio in dB needs no more, and every target runs them all."""
NEAR_TIE = 0.05
"""Largest difference of the two highest outputs that counts as a near tie, as a share of the range of all outputs."""
ONE_ANSWER = 0.95
"""Share of samples with the same predicted class from which on an agreement has no meaning."""


@dataclass(frozen=True)
class TargetRow:
    """Result of one target.

    Attributes:
        target: Name of the target.
        score_percent: Accuracy on labeled data; without labels the share of samples with the highest output of the
            original model. None if the target refuses the model, or if the model returns one class for nearly all
            random samples: the share would have no meaning.
        artifacts: File name -> content; empty if the target refuses the model.
        worst_layer: Name of the layer with the smallest signal-to-noise ratio relative to the unchanged model; empty if
            no layer differs, None if no tensor of the target has a counterpart in the model.
        worst_sqnr_db: Ratio of that layer, 10 log10(sum of squares / sum of squared differences).
        constraints: Sentences: the reason of the refusal, reasons why layers run on another engine, and remarks on
            scores that are artifacts of random samples.
        refused: Whether the target refuses the model.
        layers: Name of a tensor of the model: its signal-to-noise ratio in dB; inf without a difference.
        cycles: Estimated cycles of the network; None if the target has no estimate.
    """

    target: str
    score_percent: float | None
    artifacts: Mapping[str, bytes]
    worst_layer: str | None
    worst_sqnr_db: float
    constraints: tuple[str, ...]
    refused: bool = False
    layers: Mapping[str, float] = field(default_factory=dict)
    cycles: Figure | None = None

    @property
    def size_bytes(self) -> int:
        """Size of all files together."""
        return sum(map(len, self.artifacts.values()))


def summarize(
    reference: Execution, ranged: Model, target: Target, samples: Samples, labeled: LabeledSamples | None
) -> TargetRow:
    """Quantize with the target's defaults, emit, run and compare.

    Args:
        reference: Unchanged model.
        ranged: Same model, with ranges if the user passed any.
        target: Target to quantize for.
        samples: Samples in the encoding of the model, for the comparison of layers.
        labeled: Labeled samples for the accuracy; None to measure the agreement with the unchanged model.
    """
    try:
        execution = for_target(ranged.main, target, parse_settings(target.settings))
        artifacts = target.emit(execution.graph, ranged)
    except TflqError as error:
        return TargetRow(target.name, None, {}, "", float("inf"), (str(error),), refused=True)
    layer, ratio, layers = _compare_layers(execution, reference, samples)
    constraints = _constraints(execution.graph)
    score: float | None
    if labeled:
        score = measure(execution, labeled).percent
    else:
        ours, theirs = (answers(side, samples) for side in (execution, reference))
        score = 100.0 * float((predictions(ours) == predictions(theirs)).mean())
        if isinstance(samples, RandomSamples):
            single = describe_single_class(theirs)
            score = None if single else score
            constraints += single or artifacts_of_chance(ours, theirs)
    cycles = None if isinstance(target.estimate, str) else target.estimate(execution.graph).cycles
    return TargetRow(target.name, score, artifacts, layer, ratio, constraints, layers=layers, cycles=cycles)


def _compare_layers(
    execution: Execution, reference: Execution, samples: Samples
) -> tuple[str | None, float, dict[str, float]]:
    """Return the worst layer, its ratio, and the ratio of each tensor of the reference."""
    count = min(samples.count, COMPARED_SAMPLES)
    try:
        comparison = compare_sides(Running(execution, samples), Running(reference, samples), count)
    except InputError:
        return None, float("inf"), {}
    ratios = {t.match.second.name: t.figures.sqnr_db for t in comparison.tensors if t.node}
    layers = [t for t in comparison.diverging if t.node]
    if not layers:
        return "", float("inf"), ratios
    worst = min(layers, key=lambda t: t.figures.sqnr_db)
    return worst.node, worst.figures.sqnr_db, ratios


def describe_single_class(theirs: NDArray[np.float64]) -> tuple[str, ...]:
    """Return that a model returns one class for nearly all random samples; empty if it does not.

    Args:
        theirs: Outputs of the model, real[S, classes].
    """
    if theirs.shape[1] < 2 or len(theirs) < 2:
        return ()
    counts = np.bincount(predictions(theirs))
    if counts.max() < ONE_ANSWER * len(theirs):
        return ()
    share = f"class {int(counts.argmax())} for {counts.max()} of {len(theirs)}"
    return (f"no score: the model returns {share} random samples; name samples of its task",)


def artifacts_of_chance(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> tuple[str, ...]:
    """Return a remark if the agreement on random samples depends on near ties of the model; empty if not.

    Outputs for noise may be nearly equal, so that the smallest difference changes their order.

    Args:
        ours: Outputs of the target, real[S, classes].
        theirs: Outputs of the unchanged model, real[S, classes].
    """
    if theirs.shape[1] < 2:
        return ()
    expected = predictions(theirs)
    different = predictions(ours) != expected
    highest = np.sort(theirs, axis=1)[:, -2:]
    ties = different & (highest[:, 1] - highest[:, 0] <= NEAR_TIE * np.ptp(theirs))
    if not ties.any():
        return ()
    return (
        f"random samples: {int(ties.sum())} of {int(different.sum())} that differ are near ties of the model; samples "
        f"of its task have fewer, name some",
    )


def _constraints(graph: Graph) -> tuple[str, ...]:
    """Return the reasons why layers do not run on the target's fastest engine, each with the number of layers."""
    reasons = Counter(
        f"{node.attributes.text('engine', '')}: {node.attributes.text('engine_reason', '')}"
        for node in graph.nodes
        if node.attributes.text("engine", "") == "sq8" and "follows" not in node.attributes.text("engine_reason", "")
    )
    return tuple(f"{reason} ({count})" for reason, count in sorted(reasons.items()))

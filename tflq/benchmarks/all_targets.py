"""One model for every target: what each makes of it, in one row each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.benchmarks.accuracy import LabeledSamples, answers, measure, predictions
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
"""Two highest outputs are nearly equal where they are less than this share of all outputs' range apart."""
ONE_ANSWER = 0.95
"""Share of samples with one answer from which on an agreement says little."""


@dataclass(frozen=True)
class TargetRow:
    """What a target makes of a model.

    Attributes:
        target: its name.
        score_percent: accuracy on labeled data; without any, the share of samples whose highest output is that of
            the model as it is. None where the target refuses the model.
        artifacts: file name -> content; empty where it refuses.
        worst_layer: name of the layer with the smallest signal-to-noise ratio against the model as it is; empty where
            no layer differs, None where the target's tensors have no counterpart in the model.
        worst_sqnr_db: that ratio, 10 log10(sum of squares / sum of squared differences).
        constraints: what was hit, in words: the reason of the refusal, or of layers that run elsewhere; and where the
            score is an artifact of random samples.
    """

    target: str
    score_percent: float | None
    artifacts: Mapping[str, bytes]
    worst_layer: str | None
    worst_sqnr_db: float
    constraints: tuple[str, ...]

    @property
    def refused(self) -> bool:
        """Whether the target does not take the model."""
        return self.score_percent is None

    @property
    def size_bytes(self) -> int:
        """Size of all files together."""
        return sum(map(len, self.artifacts.values()))


def summarize(
    reference: Execution, ranged: Model, target: Target, samples: Samples, labeled: LabeledSamples | None
) -> TargetRow:
    """Quantize with the target's defaults, emit, run and compare.

    Args:
        reference: the model as it is.
        ranged: the same model with ranges, where the user gave any.
        target: one of the table.
        samples: in the model's encoding, for the comparison of layers.
        labeled: for accuracy; None to count agreement with the model as it is.
    """
    try:
        execution = for_target(ranged.main, target, parse_settings(target.settings))
        artifacts = target.emit(execution.graph, ranged)
    except TflqError as error:
        return TargetRow(target.name, None, {}, "", float("inf"), (str(error),))
    layer, ratio = _worst_layer(execution, reference, samples)
    constraints = _constraints(execution.graph)
    if labeled:
        score = measure(execution, labeled).percent
    else:
        ours, theirs = (answers(side, samples) for side in (execution, reference))
        score = 100.0 * float((predictions(ours) == predictions(theirs)).mean())
        constraints += artifacts_of_chance(ours, theirs) if isinstance(samples, RandomSamples) else ()
    return TargetRow(target.name, score, artifacts, layer, ratio, constraints)


def _worst_layer(execution: Execution, reference: Execution, samples: Samples) -> tuple[str | None, float]:
    count = min(samples.count, COMPARED_SAMPLES)
    try:
        found = compare_sides(Running(execution, samples), Running(reference, samples), count)
    except InputError:
        return None, float("inf")
    layers = [t for t in found.diverging if t.node]
    if not layers:
        return "", float("inf")
    worst = min(layers, key=lambda t: t.figures.sqnr_db)
    return worst.node, worst.figures.sqnr_db


def artifacts_of_chance(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> tuple[str, ...]:
    """Return why the agreement over random samples is one of chance, in words; nothing where it is not.

    Noise is none of a network's classes: it may answer all of it alike, or with outputs that are nearly equal, whose
    order the smallest difference changes.

    Args:
        ours: real[S, classes], of the target.
        theirs: real[S, classes], of the model as it is.
    """
    if theirs.shape[1] < 2:
        return ()
    expected = predictions(theirs)
    counts = np.bincount(expected)
    if counts.max() >= ONE_ANSWER * len(expected) and len(expected) > 1:
        return (
            f"random samples: the model answers {int(counts.argmax())} to {counts.max()} of {len(expected)}, so the "
            f"score says little; name samples",
        )
    different = predictions(ours) != expected
    highest = np.sort(theirs, axis=1)[:, -2:]
    ties = different & (highest[:, 1] - highest[:, 0] <= NEAR_TIE * np.ptp(theirs))
    if not ties.any():
        return ()
    return (
        f"random samples: {int(ties.sum())} of {int(different.sum())} that differ are near ties of the model, which "
        f"samples of its task would not be; name some",
    )


def _constraints(graph: Graph) -> tuple[str, ...]:
    """Return why layers do not run where the target is fastest, each reason with the number of layers."""
    reasons = Counter(
        f"{node.attributes.text('engine', '')}: {node.attributes.text('engine_reason', '')}"
        for node in graph.nodes
        if node.attributes.text("engine", "") == "sq8" and "follows" not in node.attributes.text("engine_reason", "")
    )
    return tuple(f"{reason} ({count})" for reason, count in sorted(reasons.items()))

"""What recovery did to a network's results, on samples that it was fitted to and on others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tflq.analysis.compare.matching import match
from tflq.analysis.compare.sides import Running
from tflq.analysis.compare.tally import sqnr_db
from tflq.analysis.executions import Execution, in_float, real_values
from tflq.analysis.inputs import Samples
from tflq.graph import Array, Model
from tflq.precision.recover.judge import DECIMALS
from tflq.precision.recover.probe import RealSamples
from tflq.precision.recover.records import Recovery
from tflq.precision.recover.reference import before_softmax


@dataclass(frozen=True)
class Outcome:
    """A network's results before and after recovery, on some samples.

    Attributes:
        samples: what they are: "fitted to", "kept aside", "verified".
        count: how many.
        sqnr_db: before and after: of the results against the float network; in front of a softmax where one ends the
            network and the target has its input.
        right: samples of which the largest output is their class, before and after; None without labels.
    """

    samples: str
    count: int
    sqnr_db: tuple[float, float]
    right: tuple[int, int] | None

    @property
    def accuracy_percent(self) -> tuple[float, float] | None:
        """Accuracy before and after."""
        return None if self.right is None else (100 * self.right[0] / self.count, 100 * self.right[1] / self.count)


def outcome(
    recovery: Recovery, source: Model, name: str, samples: Samples, labels: NDArray[np.int64] | None
) -> Outcome:
    """Run some samples through the network before and after.

    Args:
        recovery: of the network.
        source: the model that the samples are for.
        name: what the samples are.
        samples: in its encoding.
        labels: their classes, or None.
    """
    given = RealSamples(samples, source.main, recovery.plain.main)
    floating = in_float(recovery.plain, "independent")
    found = [_Side(execution, floating, given) for execution in (recovery.plain_execution, recovery.execution)]
    results = [side.run(labels) for side in found]
    (before, first), (after, second) = results
    right = None if first is None or second is None else (first, second)
    return Outcome(name, samples.count, (before, after), right)


@dataclass(frozen=True)
class _Side:
    """A network under the target beside the float network."""

    execution: Execution
    floating: Execution
    samples: RealSamples

    def run(self, labels: NDArray[np.int64] | None) -> tuple[float, int | None]:
        """Return the SQNR, and how many samples are right."""
        pairs = results_of(self.execution, self.floating, self.samples)
        output = self.execution.graph.outputs[0]
        kept = tuple({output, *(ours for ours, _ in pairs)})
        signal = noise = 0.0
        right = start = 0
        runs = (self.execution.iterate(self.samples, kept), self.floating.iterate(self.samples, [t for _, t in pairs]))
        for found, reference in zip(*runs, strict=True):
            for ours, theirs in pairs:
                wanted = reference[theirs].astype(np.float64).reshape(-1)
                real = real_values(found[ours], self.execution.graph.tensors[ours]).reshape(-1)
                signal += float(np.square(wanted).sum())
                noise += float(np.square(real - wanted).sum())
            answers = real_values(found[output], self.execution.graph.tensors[output])
            right += _right(answers, labels, start)
            start += len(answers)
        return round(sqnr_db(signal, noise), DECIMALS), None if labels is None else right


def results_of(execution: Execution, floating: Execution, samples: Samples) -> list[tuple[int, int]]:
    """Return (tensor, tensor of the float network) of each result that is judged: in front of a softmax, or outputs."""
    columns = (Running(execution, samples).columns, Running(floating, samples).columns)
    matched = {m.second.index: m.first.index for m in match(*columns).matches}
    before = before_softmax(floating.graph)
    if all(t in matched for t in before):
        return [(matched[t], t) for t in before]
    return list(zip(execution.graph.outputs, floating.graph.outputs, strict=True))


def _right(answers: Array, labels: NDArray[np.int64] | None, start: int) -> int:
    if labels is None:
        return 0
    flat = answers.reshape(len(answers), -1)
    return int(np.count_nonzero(flat.argmax(axis=1) == labels[start : start + len(flat)]))

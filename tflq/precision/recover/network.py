"""The loop over the filters of a network, and the verdict on the whole (docs/guides/recover.md).

What recovery did to a network's results, on samples that it was fitted to and on others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tflq.converters.settings import Settings
from tflq.converters.targets import Target
from tflq.diagnosis.compare.matching import match
from tflq.diagnosis.compare.sides import Running
from tflq.diagnosis.compare.tally import sqnr_db
from tflq.graph import ABSENT, Array, DType, Graph, Model, Tensor
from tflq.graph.operators import LINEAR_OPERATORS
from tflq.parallel.executions import Execution, in_float, real_values
from tflq.precision.recover.filters import Filter, filter_of
from tflq.precision.recover.judge import DECIMALS, Judge
from tflq.precision.recover.proposals import Recovered, Step, recover_layer, with_constants
from tflq.precision.recover.records import BIAS, NOTHING, LayerRecovery, Recovery, RecoverySettings
from tflq.precision.recover.reference import RealSamples, Reference, before_softmax
from tflq.sampling import Samples

LEAST_GAIN_DB = 1.0
"""What new biases of wide layers alone must gain at the outputs: less than that moves more answers than it corrects."""

Done = Callable[[LayerRecovery], object]


class Journal(Protocol):
    """Keeps what is known of filters, so that interrupted work goes on."""

    def find(self, index: int) -> Recovered | None:
        """Return what was kept for a node."""

    def add(self, recovered: Recovered) -> None:
        """Keep it."""


@dataclass(frozen=True)
class Prepared:
    """A network that is ready to be recovered, for any target and settings.

    Attributes:
        plain: the float network, each filter with a bias of its own.
        filters: node of each filter -> how it is recovered, or in words why not.
        reference: the float network's values.
    """

    plain: Model
    filters: Mapping[int, Filter | str]
    reference: Reference


def prepare(
    source: Model, network: Model, samples: tuple[Samples, Samples], options: RecoverySettings = RecoverySettings()
) -> Prepared:
    """Return a network with all that does not depend on a target; nothing runs yet.

    Args:
        source: the model that the samples are for.
        network: in floating point, with the ranges of its activations.
        samples: to fit to, and kept aside, in the encoding of `source`.
        options: how.

    Raises:
        LimitError: a layer needs more memory than the limits allow.
    """
    plain = replace(network, graphs=[_with_biases(network.main), *network.graphs[1:]])
    fitted, held_out = (RealSamples(s, source.main, plain.main) for s in samples)
    known = {i: filter_of(plain.main, i) for i, n in enumerate(plain.main.nodes) if n.operator in LINEAR_OPERATORS}
    filters = tuple(of for of in known.values() if isinstance(of, Filter))
    return Prepared(plain, known, Reference(in_float(plain, "independent"), fitted, held_out, filters, options))


def recover_network(
    prepared: Prepared,
    target: Target,
    settings: Settings,
    progress: Done = lambda _: None,
    journal: Journal | None = None,
) -> Recovery:
    """Find weights and biases for a target, filter after filter in order of execution.

    A filter is fitted to what the model's own weights give on the float network's values, from the quantized values
    that the target's earlier filters really write. What is new must be nearer to float on the samples kept aside: the
    layer's result for a layer, the outputs for the whole network.

    Args:
        prepared: the network.
        target: with a free rounding of weights.
        settings: complete.
        progress: called with each filter's result.
        journal: what it holds is not found again; what is found goes there at once. None to keep nothing.

    Raises:
        UnsupportedError, OptionError: as the target's `quantize`.
    """
    plain = prepared.plain
    prepared.reference.run()
    judge = Judge(prepared.reference, target, settings)
    first = Step(plain.main, judge.execution(plain.main))
    last, layers = first, []
    for index, of in prepared.filters.items():
        last, layer = _recovered(judge, last, index, of, journal)
        layers.append(layer)
        progress(layer)
    reason = _verdict(judge, first, last, layers)
    if reason:
        left = tuple(replace(layer, kept=NOTHING, reason=layer.reason or reason) for layer in layers)
        return Recovery(plain, plain, left, first.execution, first.execution, reason)
    result = replace(plain, graphs=[last.graph, *plain.graphs[1:]])
    return Recovery(result, plain, tuple(layers), last.execution, first.execution)


def _recovered(
    judge: Judge, step: Step, index: int, of: Filter | str, journal: Journal | None
) -> tuple[Step, LayerRecovery]:
    """Return the network behind one filter and what was done to it: what the journal knows, or what is found now."""
    if isinstance(of, str):
        node = step.graph.nodes[index]
        return step, LayerRecovery(index, node.name, node.operator, None, NOTHING, of)
    found = None if journal is None else journal.find(index)
    if found is None:
        step, found = recover_layer(judge, step, of)
        if journal is not None:
            journal.add(found)
    elif found.constants is not None:
        graph = with_constants(step.graph, of, found.constants)
        step = Step(graph, judge.execution(graph))
    return step, found.layer


def _verdict(judge: Judge, first: Step, last: Step, layers: list[LayerRecovery]) -> str:
    """Return why the whole network is left as it was; nothing where it is not."""
    outputs = before_softmax(judge.reference.floating.graph)
    old, new = (judge.held_out_db(step.execution, outputs) for step in (first, last))
    if new < old:
        return f"the outputs got worse on the samples kept aside: {old:.1f} dB before, {new:.1f} after"
    changed = [layer for layer in layers if layer.kept != NOTHING]
    is_wide = all(layer.kept == BIAS and (layer.bits or 0) > judge.reference.options.most_bits for layer in changed)
    if not (changed and is_wide):
        return ""
    if new < old + LEAST_GAIN_DB:
        return (
            f"new biases alone gain too little on the samples kept aside: {old:.1f} dB before, {new:.1f} after; "
            f"{LEAST_GAIN_DB:g} dB is the least"
        )
    agreed, agrees = (judge.agreement(step.execution) for step in (first, last))
    if agrees < agreed:
        return f"the highest outputs agree with float on fewer samples: {agreed} before, {agrees} after"
    return ""


def _with_biases(graph: Graph) -> Graph:
    """Return the float network with a bias of its own for each filter: zeros where it has none, a copy where shared."""
    result, taken = graph.copy(), set[int]()
    for index, node in enumerate(graph.nodes):
        if node.operator not in LINEAR_OPERATORS:
            continue
        t = node.inputs[2] if len(node.inputs) > 2 else ABSENT
        if t != ABSENT and t not in taken:
            taken.add(t)
            continue
        weights = graph.tensors[node.inputs[1]]
        channels = weights.shape[3] if node.operator == "depthwise_conv_2d" else weights.shape[0]
        zeros = Tensor(f"{node.name}/bias", (channels,), DType.FLOAT32, data=np.zeros(channels, np.float32))
        own = result.add_tensor(zeros if t == ABSENT else replace(graph.tensors[t], name=f"{node.name}/bias"))
        result.nodes[index] = replace(node, inputs=(*node.inputs[:2], own))
    return result


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

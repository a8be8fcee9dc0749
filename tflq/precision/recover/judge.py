"""What proposals for a filter are fitted to and judged by: the float network's values on two sets of samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tflq.analysis.compare.matching import match
from tflq.analysis.compare.sides import Running
from tflq.analysis.compare.tally import sqnr_db
from tflq.analysis.executions import Execution, for_target, real_values
from tflq.analysis.inputs import Samples
from tflq.converters.settings import Settings
from tflq.converters.targets import Target
from tflq.graph import Affine, Array, Graph, Tensor
from tflq.precision.recover.areas import Areas, areas_of, draw
from tflq.precision.recover.filters import Filter
from tflq.precision.recover.grid import Reals, exact_product
from tflq.precision.recover.moments import Moments, Observed, moments_of
from tflq.precision.recover.probe import Probe, elements, gather, offsets_of
from tflq.precision.recover.records import RecoverySettings

_JUDGED = 1 << 16
"""Elements of a layer's result that judge it on the samples that are kept aside."""

_SQUASHING = ("softmax", "log_softmax", "logistic")

DECIMALS = 6
"""Of a ratio in dB: sums of squares may differ in their last bits from one processor to the next."""


@dataclass
class Judge:
    """What the proposals for all filters share.

    Attributes:
        floating: the float network as it was, running.
        target: whose integers count.
        settings: complete.
        fitted: samples that filters are fitted to, for the float network.
        held_out: samples kept aside, that decide what stays.
        filters: that can be recovered.
        options: how many output positions are fitted to, and which.
        areas: filter's node -> what it is fitted to.
        wanted: filter's node -> what it should give in each of them: float32[G, N, C].
        reference: tensor of the float network -> elements of it on the samples kept aside: float64[1, N, 1].
    """

    floating: Execution
    target: Target
    settings: Settings
    fitted: Samples
    held_out: Samples
    filters: tuple[Filter, ...]
    options: RecoverySettings
    areas: dict[int, tuple[Areas, ...]] = field(init=False)
    wanted: dict[int, tuple[Array, ...]] = field(init=False)
    reference: dict[int, Reals] = field(init=False)

    def __post_init__(self) -> None:
        """Run the float network."""
        graph = self.floating.graph
        self.floating.engine.threads = self.options.jobs
        self.areas = {
            of.index: areas_of(of, self.fitted.count, self.options.rows, self.options.seed + of.index)
            for of in self.filters
        }
        self.wanted = self._gather(
            self.floating,
            {of.index: of.source for of in self.filters},
            lambda areas, x, chosen: self._results(areas.of, areas.windows(x, chosen)),
        )
        judged = dict.fromkeys([*(of.node.outputs[0] for of in self.filters), *before_softmax(graph), *graph.outputs])
        elements_of = {t: Probe(t, self._judged(t), graph.tensors[t].size, elements) for t in judged}
        found = gather(self.floating, self.held_out, elements_of)
        self.reference = {t: x.astype(np.float64) for t, x in found.items()}

    def execution(self, graph: Graph) -> Execution:
        """Return a float network under the target."""
        execution = for_target(graph, self.target, self.settings)
        execution.engine.threads = self.options.jobs
        return execution

    def matched(self, execution: Execution) -> dict[int, int]:
        """Return tensor of the float network -> tensor of the target that means the same."""
        ours, theirs = Running(execution, self.fitted), Running(self.floating, self.fitted)
        pairs = match(ours.columns, theirs.columns).matches
        found = {m.second.index: m.first.index for m in pairs}
        outputs = zip(self.floating.graph.outputs, execution.graph.outputs, strict=True)
        return {**found, **dict(outputs)}

    def moments(self, execution: Execution, of: Filter, source: int, largest: int) -> Moments:
        """Return the moments of the target's own values in front of a filter.

        Args:
            execution: of the network as it stands.
            of: the filter.
            source: the target's tensor that it reads.
            largest: m.
        """
        tensor = execution.graph.tensors[source]
        shape = self.floating.graph.tensors[of.source].shape

        def read(areas: Areas, x: Array, chosen: NDArray[np.int64]) -> Array:
            return areas.windows(offsets_of(x, tensor).reshape(len(x), *shape), chosen)

        windows = self._gather(execution, {of.index: source}, read)[of.index]
        is_affine = isinstance(tensor.quantisation, Affine) and tensor.dtype.is_integer
        scale = float(tensor.affine.scale[0]) if is_affine else 1.0
        weights = np.asarray(self.floating.graph.tensors[of.node.inputs[1]].data).astype(np.float64)
        observed = [
            Observed(found, wanted.astype(np.float64), areas.weight)
            for found, wanted, areas in zip(windows, self.wanted[of.index], self.areas[of.index], strict=True)
        ]
        return moments_of(observed, scale, of.matrix(weights).astype(np.float64), largest)

    def held_out_db(self, execution: Execution, tensors: tuple[int, ...]) -> float:
        """Return the SQNR of tensors of the float network under the target, on the samples kept aside, in dB.

        Of tensors that the target does not have the outputs stand in.
        """
        matched, graph = self.matched(execution), self.floating.graph
        chosen = tensors if all(t in matched for t in tensors) else graph.outputs
        probes = {}
        for t in chosen:
            read = partial(_real_elements, execution.graph.tensors[matched[t]])
            probes[t] = Probe(matched[t], self._judged(t), graph.tensors[t].size, read)
        found = gather(execution, self.held_out, probes)
        signal = sum(float(np.square(self.reference[t]).sum()) for t in chosen)
        noise = sum(float(np.square(found[t].astype(np.float64) - self.reference[t]).sum()) for t in chosen)
        return round(sqnr_db(signal, noise), DECIMALS)

    def agreement(self, execution: Execution) -> int:
        """Return on how many of all samples the highest outputs are those of the float network."""
        found = 0
        pairs = list(zip(execution.graph.outputs, self.floating.graph.outputs, strict=True))
        for samples in (self.fitted, self.held_out):
            runs = (execution.iterate(samples), self.floating.iterate(samples))
            for ours, theirs in zip(*runs, strict=True):
                same = [_highest(ours[a]) == _highest(theirs[b]) for a, b in pairs]
                found += int(np.all(same, axis=0).sum())
        return found

    def _results(self, of: Filter, windows: Array) -> NDArray[np.float32]:
        graph = self.floating.graph
        weights, bias = (np.asarray(graph.tensors[t].data).astype(np.float64) for t in of.node.inputs[1:3])
        result = exact_product(windows.astype(np.float64), of.matrix(weights).astype(np.float64))
        return (result + bias.reshape(of.groups, 1, -1)).astype(np.float32)

    def _gather(
        self, execution: Execution, sources: dict[int, int], read: Callable[[Areas, Array, NDArray[np.int64]], Array]
    ) -> dict[int, tuple[Array, ...]]:
        """Return for each filter's node what `read` makes of its input in each of its areas."""
        probes = {
            (node, i): Probe(source, areas.chosen, areas.each, partial(read, areas))
            for node, source in sources.items()
            for i, areas in enumerate(self.areas[node])
        }
        found = gather(execution, self.fitted, probes)
        return {node: tuple(found[node, i] for i in range(len(self.areas[node]))) for node in sources}

    def _judged(self, t: int) -> NDArray[np.int64]:
        total = self.held_out.count * self.floating.graph.tensors[t].size
        return draw(total, _JUDGED, self.options.seed + t)


def before_softmax(graph: Graph) -> tuple[int, ...]:
    """Return the graph's outputs; of a softmax or logistic function its input."""
    writers = {t: node for node in graph.nodes for t in node.outputs}
    return tuple(
        writers[t].inputs[0] if t in writers and writers[t].operator in _SQUASHING else t for t in graph.outputs
    )


def _highest(outputs: Array) -> NDArray[np.int64]:
    return np.asarray(outputs.reshape(len(outputs), -1).argmax(1), np.int64)


def _real_elements(tensor: Tensor, x: Array, rows: NDArray[np.int64]) -> Array:
    return elements(real_values(x, tensor), rows)

"""What proposals for a filter are fitted to and judged by: the float network's values on two sets of samples."""

from __future__ import annotations

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
from tflq.precision.recover.filters import Filter
from tflq.precision.recover.grid import Reals, exact_product
from tflq.precision.recover.moments import Moments, draw_rows, moments_of
from tflq.precision.recover.probe import Probe, elements, gather, offsets_of

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
        count: output positions of a filter that are fitted to.
        seed: of their choice.
        wanted: filter's node -> what it should give at its positions: float32[G, N, C].
        reference: tensor of the float network -> elements of it on the samples kept aside: float64[1, N, 1].
    """

    floating: Execution
    target: Target
    settings: Settings
    fitted: Samples
    held_out: Samples
    filters: tuple[Filter, ...]
    count: int
    seed: int
    wanted: dict[int, NDArray[np.float32]] = field(init=False)
    reference: dict[int, Reals] = field(init=False)

    def __post_init__(self) -> None:
        """Run the float network."""
        graph = self.floating.graph
        probes = {of.index: Probe(of.source, self._rows(of), of.positions, of.windows) for of in self.filters}
        windows = gather(self.floating, self.fitted, probes)
        self.wanted = {of.index: self._results(of, windows.pop(of.index)) for of in self.filters}
        judged = dict.fromkeys([*(of.node.outputs[0] for of in self.filters), *before_softmax(graph), *graph.outputs])
        elements_of = {t: Probe(t, self._judged(t), graph.tensors[t].size, elements) for t in judged}
        found = gather(self.floating, self.held_out, elements_of)
        self.reference = {t: x.astype(np.float64) for t, x in found.items()}

    def execution(self, graph: Graph) -> Execution:
        """Return a float network under the target."""
        return for_target(graph, self.target, self.settings)

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

        def read(x: Array, rows: Array) -> Array:
            return of.windows(offsets_of(x, tensor).reshape(len(x), *shape), rows)

        windows = gather(execution, self.fitted, {0: Probe(source, self._rows(of), of.positions, read)})[0]
        is_affine = isinstance(tensor.quantisation, Affine) and tensor.dtype.is_integer
        scale = float(tensor.affine.scale[0]) if is_affine else 1.0
        weights = np.asarray(self.floating.graph.tensors[of.node.inputs[1]].data).astype(np.float64)
        wanted = self.wanted[of.index].astype(np.float64)
        return moments_of(windows, scale, wanted, of.matrix(weights).astype(np.float64), largest)

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

    def _results(self, of: Filter, windows: Array) -> NDArray[np.float32]:
        graph = self.floating.graph
        weights, bias = (np.asarray(graph.tensors[t].data).astype(np.float64) for t in of.node.inputs[1:3])
        result = exact_product(windows.astype(np.float64), of.matrix(weights).astype(np.float64))
        return (result + bias.reshape(of.groups, 1, -1)).astype(np.float32)

    def _rows(self, of: Filter) -> NDArray[np.int64]:
        return draw_rows(self.fitted.count * of.positions, self.count, self.seed + of.index)

    def _judged(self, t: int) -> NDArray[np.int64]:
        total = self.held_out.count * self.floating.graph.tensors[t].size
        return draw_rows(total, _JUDGED, self.seed + t)


def before_softmax(graph: Graph) -> tuple[int, ...]:
    """Return the graph's outputs; of a softmax or logistic function its input."""
    writers = {t: node for node in graph.nodes for t in node.outputs}
    return tuple(
        writers[t].inputs[0] if t in writers and writers[t].operator in _SQUASHING else t for t in graph.outputs
    )


def _real_elements(tensor: Tensor, x: Array, rows: Array) -> Array:
    return elements(real_values(x, tensor), rows)

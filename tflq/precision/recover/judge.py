"""What proposals for a filter are fitted to and judged by: the float network's values on two sets of samples."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tflq.converters.settings import Settings
from tflq.converters.targets import Target
from tflq.diagnosis.compare.matching import match
from tflq.diagnosis.compare.sides import Running
from tflq.diagnosis.compare.tally import sqnr_db
from tflq.graph import Affine, Array, Graph, Tensor
from tflq.parallel.executions import Execution, for_target, real_values
from tflq.precision.recover.areas import Areas
from tflq.precision.recover.filters import Filter
from tflq.precision.recover.moments import Moments, Observed, moments_of
from tflq.precision.recover.records import Objective, objective_of
from tflq.precision.recover.reference import Probe, Reference, elements, gather, offsets_of

DECIMALS = 6
"""Of a ratio in dB: sums of squares may differ in their last bits from one processor to the next."""


@dataclass(frozen=True)
class Judge:
    """What the proposals for all filters of a network share.

    Attributes:
        reference: the float network's values.
        target: whose integers count.
        settings: complete.
    """

    reference: Reference
    target: Target
    settings: Settings

    @property
    def objective(self) -> Objective:
        """What constants are found by."""
        return objective_of(self.settings)

    def execution(self, graph: Graph) -> Execution:
        """Return a float network under the target."""
        execution = for_target(graph, self.target, self.settings)
        execution.engine.threads = self.reference.options.jobs
        return execution

    def matched(self, execution: Execution) -> dict[int, int]:
        """Return tensor of the float network -> tensor of the target that means the same."""
        ours, theirs = (
            Running(execution, self.reference.fitted),
            Running(self.reference.floating, self.reference.fitted),
        )
        pairs = match(ours.columns, theirs.columns).matches
        found = {m.second.index: m.first.index for m in pairs}
        outputs = zip(self.reference.floating.graph.outputs, execution.graph.outputs, strict=True)
        return {**found, **dict(outputs)}

    def moments(self, execution: Execution, of: Filter, source: int, largest: int) -> Moments:
        """Return the moments of the target's own values in front of a filter, or what its objective has there.

        Args:
            execution: of the network as it stands.
            of: the filter.
            source: the target's tensor that it reads.
            largest: m.
        """
        tensor, objective = execution.graph.tensors[source], self.objective
        is_affine = isinstance(tensor.quantization, Affine) and tensor.dtype.is_integer
        shape = self.reference.floating.graph.tensors[of.source].shape

        def read(areas: Areas, x: Array, chosen: NDArray[np.int64]) -> Array:
            own = self.target.encode(x.reshape(-1, *tensor.shape), tensor) if objective.reads_float and is_affine else x
            return areas.windows(offsets_of(own, tensor).reshape(len(x), *shape), chosen)

        ran, place = (self.reference.floating, of.source) if objective.reads_float else (execution, source)
        windows = self.reference.gather(ran, {of.index: place}, read)[of.index]
        scale = float(tensor.affine.scale[0]) if is_affine else 1.0
        constants = (self.reference.floating.graph.tensors[t].data for t in of.node.inputs[1:3])
        weights, bias = (np.asarray(data).astype(np.float64) for data in constants)
        fixed = 0.0 if objective.moves_bias else bias.reshape(of.groups, 1, -1)
        observed = [
            Observed(found, wanted.astype(np.float64) - fixed, areas.weight)
            for found, wanted, areas in zip(
                windows, self.reference.wanted[of.index], self.reference.areas[of.index], strict=True
            )
        ]
        counted = observed[:1] if objective.rounds else observed
        return moments_of(counted, scale, of.matrix(weights).astype(np.float64), largest, objective)

    def held_out_db(self, execution: Execution, tensors: tuple[int, ...]) -> float:
        """Return the SQNR of tensors of the float network under the target, on the samples kept aside, in dB.

        Of tensors that the target does not have the outputs stand in.
        """
        matched, graph = self.matched(execution), self.reference.floating.graph
        chosen = tensors if all(t in matched for t in tensors) else graph.outputs
        probes = {}
        for t in chosen:
            read = partial(_real_elements, execution.graph.tensors[matched[t]])
            probes[t] = Probe(matched[t], self.reference.judged(t), graph.tensors[t].size, read)
        found = gather(execution, self.reference.held_out, probes)
        signal = sum(float(np.square(self.reference.values[t]).sum()) for t in chosen)
        noise = sum(float(np.square(found[t].astype(np.float64) - self.reference.values[t]).sum()) for t in chosen)
        return round(sqnr_db(signal, noise), DECIMALS)

    def agreement(self, execution: Execution) -> int:
        """Return on how many of all samples the highest outputs are those of the float network."""
        found = 0
        pairs = list(zip(execution.graph.outputs, self.reference.floating.graph.outputs, strict=True))
        for samples in (self.reference.fitted, self.reference.held_out):
            runs = (execution.iterate(samples), self.reference.floating.iterate(samples))
            for ours, theirs in zip(*runs, strict=True):
                same = [_highest(ours[a]) == _highest(theirs[b]) for a, b in pairs]
                found += int(np.all(same, axis=0).sum())
        return found


def _highest(outputs: Array) -> NDArray[np.int64]:
    return np.asarray(outputs.reshape(len(outputs), -1).argmax(1), np.int64)


def _real_elements(tensor: Tensor, x: Array, rows: NDArray[np.int64]) -> Array:
    return elements(real_values(x, tensor), rows)

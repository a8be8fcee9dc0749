"""The float network's values on two sets of samples: what filters are fitted to, and what judges them.

Which samples are kept aside: nothing is fitted to them, and they decide what stays.

Parts of tensors of a run: windows of a filter's input, or some elements of a result, sample by sample.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tflq import limits
from tflq.arrays import Doubles, Integers, Singles
from tflq.errors import InputError, TflqWarning
from tflq.graph import Affine, Array, Graph, Tensor
from tflq.parallel.executions import Execution, real_values
from tflq.precision.recover.areas import Areas, areas_of, draw
from tflq.precision.recover.filters import Filter
from tflq.precision.recover.moments import exact_product
from tflq.precision.recover.records import Cost, RecoverySettings, cost_of
from tflq.sampling import GivenSamples, Samples

_CHUNK_BYTES = 128 << 20
"""Of the tensors that are read, counted as float64, that a run holds at a time."""

Key = TypeVar("Key")


@dataclass(frozen=True)
class Probe:
    """What to keep of one tensor.

    Attributes:
        tensor: of the graph that runs.
        rows: ascending numbers below samples * positions.
        positions: rows of one sample.
        read: returns [groups, rows, values] of an array [S, *shape] and some rows of it.
    """

    tensor: int
    rows: NDArray[np.int64]
    positions: int
    read: Callable[[Array, NDArray[np.int64]], Array]


@dataclass(frozen=True)
class RealSamples:
    """Samples of a model for its float network.

    Attributes:
        samples: in the model's encoding.
        source: the model's graph.
        network: the float network.
    """

    samples: Samples
    source: Graph
    network: Graph

    @property
    def count(self) -> int:
        """Number of samples."""
        return self.samples.count

    def take(self, start: int, stop: int) -> list[Array]:
        """Return samples start..stop-1 as real numbers where the network takes them so."""
        inputs = zip(self.samples.take(start, stop), self.source.inputs, self.network.inputs, strict=True)
        return [
            real_values(x, self.source.tensors[a]).astype(self.network.tensors[b].dtype.storage) for x, a, b in inputs
        ]


def gather(execution: Execution, samples: Samples, probes: Mapping[Key, Probe]) -> dict[Key, Array]:
    """Run the samples and return what each probe keeps, by its key: [groups, rows, values].

    The samples run in chunks of bounded size; what is kept does not depend on that.
    """
    tensors = tuple(dict.fromkeys(probe.tensor for probe in probes.values()))
    sample_bytes = sum(8 * execution.graph.tensors[t].size for t in tensors)
    size = max(1, min(execution.samples_at_a_time, _CHUNK_BYTES // max(1, sample_bytes)))
    parts: dict[Key, list[Array]] = {key: [] for key in probes}
    start = 0
    for found in replace(execution, samples_at_a_time=size).iterate(samples, tensors):
        count = min(size, samples.count - start)
        for key, probe in probes.items():
            first, last = np.searchsorted(probe.rows, (start * probe.positions, (start + count) * probe.positions))
            if first < last:
                parts[key].append(probe.read(found[probe.tensor], probe.rows[first:last] - start * probe.positions))
        start += count
    return {key: np.concatenate(found, axis=1) for key, found in parts.items()}


def offsets_of(array: Array, tensor: Tensor) -> Array:
    """Return quantized values less their zero point, int32[S, *shape]; real values of other tensors."""
    affine = tensor.quantization
    if isinstance(affine, Affine) and tensor.dtype.is_integer:
        return np.asarray(array.astype(np.int32) - affine.along(len(tensor.shape))[1].astype(np.int32))
    return real_values(array, tensor)


def elements(array: Array, rows: NDArray[np.int64]) -> Array:
    """Return single elements of an array: [1, rows, 1]."""
    return np.asarray(array.reshape(-1)[rows].reshape(1, -1, 1))


_ASIDE = 10
"""One sample of so many: those whose number ends with 9."""

_FEW = 100


def split_numbers(count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the numbers of the samples to fit to, and of those kept aside: one of ten, one at least.

    Raises:
        InputError: fewer than 2.
    """
    if count < 2:
        raise InputError(f"recovery needs 2 samples or more, one of them to be kept aside; there is {count}")
    numbers = np.arange(count)
    is_aside = numbers % _ASIDE == min(count, _ASIDE) - 1
    return numbers[~is_aside], numbers[is_aside]


def taken(samples: Samples, numbers: NDArray[np.int64]) -> GivenSamples:
    """Return some of the samples."""
    return GivenSamples([array[numbers] for array in samples.take(0, samples.count)])


def split(samples: Samples) -> tuple[GivenSamples, GivenSamples]:
    """Return the samples to fit to, and those kept aside.

    Warns:
        TflqWarning: fewer than 100.

    Raises:
        InputError: fewer than 2.
    """
    count = samples.count
    fitted, aside = split_numbers(count)
    if count < _FEW:
        warnings.warn(f"weights are fitted to {count} samples; {_FEW} or more are better", TflqWarning, stacklevel=4)
    return taken(samples, fitted), taken(samples, aside)


_JUDGED = 1 << 16
"""Elements of a layer's result that judge it on the samples that are kept aside."""

_SQUASHING = ("softmax", "log_softmax", "logistic")


@dataclass
class Reference:
    """What the float network gives; it serves every target and setting.

    Attributes:
        floating: the float network as it was, running.
        fitted: samples that filters are fitted to, for the float network.
        held_out: samples kept aside, that decide what stays.
        filters: that can be recovered.
        options: how many output positions are fitted to, and which.
        areas: filter's node -> what it is fitted to.
        cost: of a recovery.
        wanted: filter's node -> what it should give in each of them: float32[G, N, C].
        values: tensor of the float network -> elements of it on the samples kept aside: float64[1, N, 1].
    """

    floating: Execution
    fitted: Samples
    held_out: Samples
    filters: tuple[Filter, ...]
    options: RecoverySettings
    areas: dict[int, tuple[Areas, ...]] = field(init=False)
    cost: Cost = field(init=False)
    wanted: dict[int, tuple[Array, ...]] = field(init=False)
    values: dict[int, Doubles] = field(init=False)

    def __post_init__(self) -> None:
        """Choose what filters are fitted to; nothing runs yet.

        Raises:
            LimitError: a layer needs more memory than the limits allow.
        """
        count, rows, seed = self.fitted.count, self.options.rows, self.options.seed
        self.floating.engine.threads = self.options.jobs
        self.areas = {of.index: areas_of(of, count, rows, seed + of.index) for of in self.filters}
        self.cost = cost_of(self.floating.graph, self.areas, (count, self.held_out.count))
        limits.current().require(
            "max_memory", self.cost.peak_bytes, "recovery: bytes that its largest layer needs (fewer --rows need less)"
        )
        self.wanted, self.values = {}, {}

    def run(self) -> None:
        """Run the float network, once."""
        if self.values:
            return
        graph = self.floating.graph
        self.wanted = self.gather(
            self.floating,
            {of.index: of.source for of in self.filters},
            lambda areas, x, chosen: self._results(areas.of, areas.windows(x, chosen)),
        )
        judged = dict.fromkeys([*(of.node.outputs[0] for of in self.filters), *before_softmax(graph), *graph.outputs])
        elements_of = {t: Probe(t, self.judged(t), graph.tensors[t].size, elements) for t in judged}
        found = gather(self.floating, self.held_out, elements_of)
        self.values = {t: x.astype(np.float64) for t, x in found.items()}

    def gather(
        self, execution: Execution, sources: dict[int, int], read: Callable[[Areas, Array, Integers], Array]
    ) -> dict[int, tuple[Array, ...]]:
        """Return for each filter's node what `read` makes of its input in each of its areas."""
        probes = {
            (node, i): Probe(source, areas.chosen, areas.each, partial(read, areas))
            for node, source in sources.items()
            for i, areas in enumerate(self.areas[node])
        }
        found = gather(execution, self.fitted, probes)
        return {node: tuple(found[node, i] for i in range(len(self.areas[node]))) for node in sources}

    def judged(self, t: int) -> Integers:
        """Return the elements of a tensor that judge it."""
        total = self.held_out.count * self.floating.graph.tensors[t].size
        return draw(total, _JUDGED, self.options.seed + t)

    def _results(self, of: Filter, windows: Array) -> Singles:
        graph = self.floating.graph
        weights, bias = (np.asarray(graph.tensors[t].data).astype(np.float64) for t in of.node.inputs[1:3])
        result = exact_product(windows.astype(np.float64), of.matrix(weights).astype(np.float64))
        return (result + bias.reshape(of.groups, 1, -1)).astype(np.float32)


def before_softmax(graph: Graph) -> tuple[int, ...]:
    """Return the graph's outputs; of a softmax or logistic function its input."""
    writers = {t: node for node in graph.nodes for t in node.outputs}
    return tuple(
        writers[t].inputs[0] if t in writers and writers[t].operator in _SQUASHING else t for t in graph.outputs
    )

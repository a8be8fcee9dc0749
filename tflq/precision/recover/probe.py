"""Parts of tensors of a run: windows of a filter's input, or some elements of a result, sample by sample."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tflq.analysis.executions import Execution, real_values
from tflq.analysis.inputs import Samples
from tflq.graph import Affine, Array, Graph, Tensor

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
    affine = tensor.quantisation
    if isinstance(affine, Affine) and tensor.dtype.is_integer:
        return np.asarray(array.astype(np.int32) - affine.along(len(tensor.shape))[1].astype(np.int32))
    return real_values(array, tensor)


def elements(array: Array, rows: NDArray[np.int64]) -> Array:
    """Return single elements of an array: [1, rows, 1]."""
    return np.asarray(array.reshape(-1)[rows].reshape(1, -1, 1))

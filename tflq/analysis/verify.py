"""Holds tflq's interpreter against TFLite: every tensor, every sample, bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tflq.analysis.difference import NO_ELEMENTS, Difference, compare
from tflq.analysis.inputs import Samples
from tflq.analysis.oracle import Oracle, OracleIdentity, OracleRun
from tflq.graph import Array, Graph
from tflq.interpreter import Engine

_MOST_SAMPLES_AT_A_TIME = 256


@dataclass(frozen=True)
class TensorVerdict:
    """What came out for one tensor.

    Attributes:
        index: of the tensor in the graph.
        name: of the tensor.
        dtype: its type.
        shape: of one sample.
        operator: number of the operator that writes it.
        difference: tflq's values against TFLite's.
        unavailable: why TFLite cannot return it; None where it does.
    """

    index: int
    name: str
    dtype: str
    shape: tuple[int, ...]
    operator: int
    difference: Difference
    unavailable: str | None = None


@dataclass(frozen=True)
class Verdict:
    """What came out for a model.

    Attributes:
        identity: who TFLite was: package, version, kernels.
        samples: number of samples that were run.
        tensors: every tensor that an operator writes, in order of execution.
    """

    identity: OracleIdentity
    samples: int
    tensors: tuple[TensorVerdict, ...]

    @property
    def total(self) -> Difference:
        """All tensors together."""
        return sum((t.difference for t in self.tensors), NO_ELEMENTS)

    @property
    def compared(self) -> tuple[TensorVerdict, ...]:
        """The tensors that TFLite returned."""
        return tuple(t for t in self.tensors if t.unavailable is None)

    @property
    def is_equal(self) -> bool:
        """Whether every element of every tensor that TFLite returned is equal, and there was at least one tensor."""
        return bool(self.compared) and all(t.difference.is_equal for t in self.compared)


def verify(
    graph: Graph,
    content: bytes,
    samples: Samples,
    oracle: Oracle,
    progress: Callable[[int], object] = lambda _: None,
) -> Verdict:
    """Run the samples in both, chunk by chunk, and compare every tensor that an operator writes.

    Args:
        graph: the model's main graph, as the reader gives it.
        content: the .tflite file, for TFLite.
        samples: what to run; memory does not grow with their number.
        oracle: TFLite.
        progress: called with the number of samples just finished.

    Raises:
        UnsupportedError: an operator or type without a kernel.
        OracleError: TFLite refuses the model, aborts, or does not answer.
    """
    engine = Engine(graph, "tflite")
    writers = graph.producers()
    size = min(engine.chunk_size(), _MOST_SAMPLES_AT_A_TIME)
    found = dict.fromkeys(writers, NO_ELEMENTS)
    unavailable: dict[int, str] = {}
    for start in range(0, samples.count, size):
        inputs = samples.take(start, min(start + size, samples.count))
        ours = engine.run(inputs, keep=tuple(writers), chunk_size=size)
        for part in oracle.iterate(content, inputs, tensors=tuple(writers)):
            unavailable |= part.unavailable
            _compare(part, ours, start, found)
        progress(len(inputs[0]) if inputs else 1)
    return Verdict(
        oracle.identity, samples.count, tuple(_verdict(graph, t, writers, found, unavailable) for t in found)
    )


def _compare(part: OracleRun, ours: Mapping[int, Array], start: int, found: dict[int, Difference]) -> None:
    """Add one chunk of TFLite's, whose `start` counts from this chunk of ours."""
    for t, theirs in part.tensors.items():
        mine = ours[t][part.start : part.start + part.samples]
        found[t] += compare(mine, theirs, start + part.start)
    for t, rows in part.ragged.items():
        for number, theirs in enumerate(rows, part.start):
            found[t] += compare(ours[t][number : number + 1], theirs[None], start + number)


def _verdict(
    graph: Graph, t: int, writers: Mapping[int, int], found: Mapping[int, Difference], unavailable: Mapping[int, str]
) -> TensorVerdict:
    tensor = graph.tensors[t]
    reason = unavailable.get(t)
    difference = found[t] if reason is None else NO_ELEMENTS
    return TensorVerdict(t, tensor.name, tensor.dtype.value, tensor.shape, writers[t], difference, reason)

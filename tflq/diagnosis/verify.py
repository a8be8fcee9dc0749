"""Verification of tflq's interpreter against TFLite: every tensor and sample, bit for bit, in one or more processes.

Differing elements that the table of known differences covers are counted by reason (diagnosis/known_differences).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, reduce

import numpy as np

from tflq.diagnosis.difference import NO_ELEMENTS, Difference, compare
from tflq.diagnosis.known_differences import Blame, KnownElements, summed
from tflq.errors import MissingExtraError, UnsupportedError
from tflq.graph import Array, DType, Graph, Model
from tflq.graph.cut import with_nodes
from tflq.interpreter import Engine
from tflq.interpreter.execution.engine import State
from tflq.interpreter.runtimes import REFERENCE, RuntimeName, find_runtime
from tflq.oracle import Oracle, OracleIdentity, OracleRun
from tflq.oracle.delegated import with_written_tensors_as_outputs
from tflq.oracle.oracle import Tensors
from tflq.oracle.package import Kernels, Package
from tflq.parallel.workers import in_order, open_workers
from tflq.sampling import GivenSamples, Portion, Samples

_MOST_SAMPLES_AT_A_TIME = 256


@dataclass(frozen=True)
class TensorVerdict:
    """Result for one tensor.

    Attributes:
        index: Index of the tensor in the graph.
        name: Name of the tensor.
        dtype: Type of the tensor.
        shape: Shape of one sample.
        operator: number of the operator that writes it; None for an output that no operator writes.
        difference: tflq's values against TFLite's.
        unavailable: Reason why TFLite cannot return the tensor; None if it can.
        known: Numbers of differing elements that are known to differ, by reason.
    """

    index: int
    name: str
    dtype: str
    shape: tuple[int, ...]
    operator: int | None
    difference: Difference
    unavailable: str | None = None
    known: tuple[KnownElements, ...] = ()

    @property
    def unknown(self) -> int:
        """Number of differing elements that no known difference explains."""
        return self.difference.differing - sum(k.elements for k in self.known)

    @property
    def is_explained(self) -> bool:
        """Whether each element that differs is known to."""
        return self.unknown == 0 and self.difference.mismatch is None

    @property
    def words(self) -> str:
        """The first difference as text; empty if there is none."""
        first = self.difference.first
        if self.difference.mismatch is not None or first is None:
            return self.difference.mismatch or ""
        return f"sample {first.sample} at {list(first.index)}: {first.found}, TFLite {first.expected}"


@dataclass(frozen=True)
class Verification:
    """Result for a model.

    Attributes:
        identity: Identity of TFLite: package, version, kernels.
        samples: number of samples that were run.
        tensors: every tensor that an operator writes, in order of execution, then outputs that none writes.
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

    @property
    def not_compared(self) -> dict[str, int]:
        """Number of tensors that TFLite does not return, by why."""
        return dict(Counter(t.unavailable for t in self.tensors if t.unavailable is not None))

    @property
    def known(self) -> tuple[KnownElements, ...]:
        """The reasons of all tensors, each with the elements that it explains."""
        return summed(k for t in self.tensors for k in t.known)

    @property
    def is_explained(self) -> bool:
        """Whether every difference is a known one, and at least one tensor was compared."""
        return bool(self.compared) and all(t.is_explained for t in self.compared)


def written_tensors(graph: Graph) -> tuple[int, ...]:
    """Return the tensors that operators write, then other outputs; omit resources, on which TFLite may crash."""
    every = dict.fromkeys([*graph.producers(), *graph.outputs])
    return tuple(t for t in every if graph.tensors[t].dtype not in (DType.RESOURCE, DType.VARIANT))


def find_refusal(model: Model, samples: Samples, state: State = "independent") -> UnsupportedError | None:
    """Return the error of an operator that tflq refuses for one of the samples, as TFLite aborts there; else None."""
    engine = Engine(model.main, "tflite", graphs=model.graphs, state=state)
    size = samples.count if state == "stream" else min(engine.chunk_size(), _MOST_SAMPLES_AT_A_TIME)
    try:
        for start in range(0, samples.count, size):
            engine.run(samples.take(start, min(start + size, samples.count)))
    except UnsupportedError as error:
        return error
    return None


def refused_node(graph: Graph, error: UnsupportedError) -> int | None:
    """Return the first node that an error of the interpreter names; None if it names none."""
    text = str(error.args[0])
    return next((i for i in range(len(graph.nodes)) if f"{graph.where(i)}:" in text), None)


def truncated(model: Model, count: int) -> Model:
    """Return a model with the first nodes of the main graph; the tensors keep their numbers."""
    graph = with_nodes(model.main, range(count))
    return replace(model, graphs=[graph, *model.graphs[1:]], signatures=[])


def with_unreached(verdict: Verification, model: Model, reason: str) -> Verification:
    """Return the verdict of a truncated model with the other tensors of the whole model as not available."""
    graph, seen = model.main, {tensor.index for tensor in verdict.tensors}
    writers = graph.producers()
    rest = [t for t in written_tensors(graph) if t not in seen]
    others = (_verdict(graph, t, writers, NO_ELEMENTS, reason, ()) for t in rest)
    return replace(verdict, tensors=(*verdict.tensors, *others))


def verify(
    model: Model,
    content: bytes,
    samples: Samples,
    oracle: Oracle,
    progress: Callable[[int], object] = lambda _: None,
    state: State = "independent",
    first_sample: int = 0,
    runtime: RuntimeName = REFERENCE,
) -> Verification:
    """Run the samples in both, chunk by chunk, and compare every tensor that an operator writes, and every output.

    Args:
        model: Model as read from the file; its main graph runs.
        content: the .tflite file, for TFLite.
        samples: Samples to run; memory does not grow with their number (a stream keeps all inputs in memory).
        oracle: TFLite.
        progress: called with the number of samples just finished.
        state: "independent" for a fresh state per sample, "stream" if samples are successive invocations.
        first_sample: the number that the first one has in the report.
        runtime: Runtime of `oracle`.

    Raises:
        UnsupportedError: an operator or type without a kernel.
        OracleError: TFLite refuses the model, aborts, or does not respond.
    """
    graph = model.main
    engine = Engine(graph, find_runtime(runtime).arithmetic, graphs=model.graphs, state=state)
    writers = graph.producers()
    wanted = written_tensors(graph)
    asked: Tensors = wanted
    judged = content
    if runtime == "xnnpack":
        asked, judged = "outputs", with_written_tensors_as_outputs(content)
    size = samples.count if state == "stream" else min(engine.chunk_size(), _MOST_SAMPLES_AT_A_TIME)
    totals = dict.fromkeys(wanted, NO_ELEMENTS)
    unavailable: dict[int, str] = {}
    blame = Blame(model, oracle.identity, state)
    for start in range(0, samples.count, size):
        inputs = samples.take(start, min(start + size, samples.count))
        for part in oracle.iterate(judged, inputs, tensors=asked, state=state):
            given = [x[part.start : part.start + part.samples] for x in inputs]
            ours = engine.run(given, keep=wanted)
            unavailable |= part.unavailable
            _compare(part, ours, first_sample + start + part.start, totals)
            if runtime == REFERENCE:
                blame.add(given, ours, part.tensors)
            progress(part.samples)
    verdicts = (_verdict(graph, t, writers, totals[t], unavailable.get(t), blame.known(t)) for t in totals)
    return Verification(oracle.identity, samples.count, tuple(verdicts))


def _compare(part: OracleRun, ours: Mapping[int, Array], first: int, sums: dict[int, Difference]) -> None:
    """Add the differences of one chunk with `first` as its first sample number; shapes may differ between samples."""
    for t, theirs in part.tensors.items():
        if ours[t].dtype == theirs.dtype:
            sums[t] += compare(ours[t], theirs, first)
        else:
            sums[t] = sum((compare(_row(ours[t], n), row[None], first + n) for n, row in enumerate(theirs)), sums[t])
    for t, rows in part.ragged.items():
        sums[t] = sum((compare(_row(ours[t], n), row[None], first + n) for n, row in enumerate(rows)), sums[t])


def _row(values: Array, number: int) -> Array:
    """Return one sample as [1, *shape], out of an array [S, *shape] or an object array [S] of arrays."""
    row: object = values[number]
    return row[None] if isinstance(row, np.ndarray) else values[number : number + 1]


def _verdict(
    graph: Graph,
    t: int,
    writers: Mapping[int, int],
    difference: Difference,
    unavailable: str | None,
    known: tuple[KnownElements, ...],
) -> TensorVerdict:
    tensor = graph.tensors[t]
    if unavailable is not None:
        difference, known = NO_ELEMENTS, ()
    return TensorVerdict(
        t, tensor.name, tensor.dtype.value, tensor.shape, writers.get(t), difference, unavailable, known
    )


_SAMPLES = 64
"""Samples per worker and task; with as many, the time to lower the model again is small."""

Part = tuple[int, Portion]
"""Number of the first sample, and the samples."""


@dataclass(frozen=True)
class Judged:
    """Data that all parts share.

    Attributes:
        model: Model as read from the file.
        content: the .tflite file, for TFLite.
        package: Package that contains TFLite.
        kernels: Kernels of TFLite.
        runtime: Runtime to compare with.
    """

    model: Model
    content: bytes
    package: Package
    kernels: Kernels
    runtime: RuntimeName = REFERENCE

    def __call__(self, part: Part) -> Verification:
        """Verify some samples, each with a fresh state."""
        first, portion = part
        oracle = _oracle(self.package, self.kernels)
        samples = GivenSamples(portion.arrays())
        return verify(self.model, self.content, samples, oracle, first_sample=first, runtime=self.runtime)


def verify_parts(
    judged: Judged,
    samples: Samples,
    jobs: int = 1,
    scheduler: str | None = None,
    progress: Callable[[int], object] = lambda _: None,
) -> Verification:
    """Return the result of `verify` for independent samples, equal in every count.

    Args:
        judged: the model and the identity of TFLite.
        samples: Samples to run.
        jobs: processes of this machine.
        scheduler: address of a dask scheduler; its workers are used instead.
        progress: called with the number of samples just finished.

    Raises:
        UnsupportedError, OracleError: as `verify`.
        MissingExtraError, OptionError: as `open_workers`; a worker without TFLite.
    """
    verdicts: list[Verification] = []
    with open_workers(judged, jobs, scheduler) as run:
        for verdict in in_order(run, _parts(samples)):
            verdicts.append(verdict)
            progress(verdict.samples)
    return reduce(_joined, verdicts)


def _parts(samples: Samples) -> Iterator[Part]:
    for start in range(0, samples.count, _SAMPLES):
        yield start, Portion.from_samples(samples, start, start + _SAMPLES)


@cache
def _oracle(package: Package, kernels: Kernels) -> Oracle:
    """Return this process's TFLite; it ends with the process."""
    try:
        return Oracle(package, kernels)
    except MissingExtraError as error:
        raise MissingExtraError(f"in a worker: {error}") from None


def _joined(one: Verification, later: Verification) -> Verification:
    tensors = tuple(_both(a, b) for a, b in zip(one.tensors, later.tensors, strict=True))
    return Verification(one.identity, one.samples + later.samples, tensors)


def _both(one: TensorVerdict, later: TensorVerdict) -> TensorVerdict:
    unavailable = [t for t in (later, one) if t.unavailable is not None]
    if unavailable:
        return unavailable[0]
    return replace(one, difference=one.difference + later.difference, known=summed((*one.known, *later.known)))

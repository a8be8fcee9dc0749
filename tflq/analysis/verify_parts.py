"""Holds tflq's interpreter against TFLite in several processes, each with a TFLite of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, reduce

from tflq.analysis.inputs import GivenSamples, Portion, Samples
from tflq.analysis.known_differences import summed
from tflq.analysis.oracle import Oracle
from tflq.analysis.oracle.package import Kernels, Package
from tflq.analysis.verify import TensorVerdict, Verdict, verify
from tflq.analysis.workers import in_order, open_workers
from tflq.errors import MissingExtraError
from tflq.graph import Model

_SAMPLES = 64
"""That a worker gets at a time: enough that lowering the model again costs little beside them."""

Part = tuple[int, Portion]
"""Number of the first sample, and the samples."""


@dataclass(frozen=True)
class Judged:
    """What every part is about.

    Attributes:
        model: as the reader gives it.
        content: the .tflite file, for TFLite.
        package: that holds TFLite.
        kernels: of TFLite.
    """

    model: Model
    content: bytes
    package: Package
    kernels: Kernels

    def __call__(self, part: Part) -> Verdict:
        """Verify some samples, each with a fresh state."""
        first, portion = part
        oracle = _oracle(self.package, self.kernels)
        return verify(self.model, self.content, GivenSamples(portion.arrays()), oracle, first_sample=first)


def verify_parts(
    judged: Judged,
    samples: Samples,
    jobs: int = 1,
    scheduler: str | None = None,
    progress: Callable[[int], object] = lambda _: None,
) -> Verdict:
    """Return what `verify` returns for samples that do not follow each other, to the last count.

    Args:
        judged: the model and who TFLite is.
        samples: what to run.
        jobs: processes of this machine.
        scheduler: address of a dask scheduler, whose workers are used instead.
        progress: called with the number of samples just finished.

    Raises:
        UnsupportedError, OracleError: as `verify`.
        MissingExtraError, OptionError: as `open_workers`; a worker without TFLite.
    """
    verdicts: list[Verdict] = []
    with open_workers(judged, jobs, scheduler) as run:
        for verdict in in_order(run, _parts(samples)):
            verdicts.append(verdict)
            progress(verdict.samples)
    return reduce(_joined, verdicts)


def _parts(samples: Samples) -> Iterator[Part]:
    for start in range(0, samples.count, _SAMPLES):
        yield start, Portion.of(samples, start, start + _SAMPLES)


@cache
def _oracle(package: Package, kernels: Kernels) -> Oracle:
    """Return this process's TFLite; it ends with the process."""
    try:
        return Oracle(package, kernels)
    except MissingExtraError as error:
        raise MissingExtraError(f"in a worker: {error}") from None


def _joined(one: Verdict, later: Verdict) -> Verdict:
    tensors = tuple(_both(a, b) for a, b in zip(one.tensors, later.tensors, strict=True))
    return Verdict(one.identity, one.samples + later.samples, tensors)


def _both(one: TensorVerdict, later: TensorVerdict) -> TensorVerdict:
    unavailable = [t for t in (later, one) if t.unavailable is not None]
    if unavailable:
        return unavailable[0]
    return replace(one, difference=one.difference + later.difference, known=summed((*one.known, *later.known)))

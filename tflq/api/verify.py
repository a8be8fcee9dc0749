"""`tflq.verify`: every tensor against TFLite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tflq.api.options import Progress, SampleOptions, SampleSource, changed, silent
from tflq.api.read_model import ModelSource, name_of, read_with_content
from tflq.api.result import TableResult, picked
from tflq.api.samples import samples as choose_samples
from tflq.converters.tflite import model_to_bytes
from tflq.diagnosis import verify as verification
from tflq.diagnosis.known_differences import KnownElements
from tflq.diagnosis.verify import Judged, verify_parts
from tflq.diagnosis.wide_multipliers import WideMultiplier, wide_multipliers
from tflq.interpreter.execution.engine import State
from tflq.oracle import Oracle
from tflq.oracle.package import Kernels, Package
from tflq.quoting import Json
from tflq.report.junit import Case, write_junit

DEFAULT_SAMPLES = 100


@dataclass(frozen=True)
class VerifyOptions:
    """How TFLite runs, and what counts.

    Attributes:
        package: that holds TFLite; "auto" takes litert, else tensorflow.
        kernels: TFLite's reference kernels, its optimized ones, or what it uses by default (with XNNPACK).
        state: for models that keep state.
        strict: known differences (docs/operators.md) count, too.
        jobs: processes to use, each with a TFLite of its own; those of more than one import the program that calls,
            which must not run then. Samples that follow each other run in one.
        scheduler: address of a dask scheduler whose workers are used instead.
    """

    package: Package = "auto"
    kernels: Kernels = "BUILTIN_REF"
    state: State | None = None
    strict: bool = False
    jobs: int = 1
    scheduler: str | None = None


@dataclass(frozen=True)
class VerifyResult(TableResult):
    """What came out against TFLite.

    Attributes:
        name: of the model.
        verdict: every tensor, and who TFLite was.
        seed: of random samples; None where samples were named.
        strict: as in the options.
        wide_multipliers: layers whose results in TFLite depend on the processor.
    """

    name: str
    verdict: verification.Verdict
    seed: int | None
    strict: bool
    wide_multipliers: tuple[WideMultiplier, ...]

    @property
    def is_right(self) -> bool:
        """Whether nothing differs that counts."""
        return self.verdict.is_equal or (self.verdict.is_explained and not self.strict)

    def rows(self) -> Sequence[Mapping[str, Json]]:
        """Return a row for each tensor."""
        return [_row(tensor) for tensor in self.verdict.tensors]

    def report(self) -> Mapping[str, Json]:
        """Return the totals and the rows."""
        verdict, identity = self.verdict, self.verdict.identity
        return {
            "model": self.name,
            "oracle": picked(identity, "package", "version", "kernels"),
            "samples": verdict.samples,
            "seed": self.seed,
            "elements": verdict.total.elements,
            "differing": verdict.total.differing,
            "known": _known(verdict.known),
            "unknown": sum(t.unknown for t in verdict.compared),
            "equal": verdict.is_equal,
            "not_compared": verdict.not_compared,
            "wide_multipliers": [asdict(w) for w in self.wide_multipliers],
            "tensors": self.rows(),
        }

    def write_junit(self, path: str | Path) -> None:
        """Write a JUnit test for each tensor.

        Raises:
            OutputError: the file cannot be written.
        """
        cases = [Case(t.name, self._failure(t), t.unavailable) for t in self.verdict.tensors]
        write_junit(Path(path), self.name, cases)

    def _failure(self, tensor: verification.TensorVerdict) -> str | None:
        difference = tensor.difference
        if tensor.unavailable is not None or difference.is_equal or (tensor.is_explained and not self.strict):
            return None
        return f"{difference.differing} of {difference.elements} elements differ; {tensor.words}"


def verify(
    model: ModelSource,
    samples: SampleSource = None,
    options: VerifyOptions = VerifyOptions(),
    *,
    progress: Progress = silent,
    **changes: object,
) -> VerifyResult:
    """Run a model in tflq and in TFLite and compare every tensor bit for bit (NaN equals NaN).

    Args:
        model: as TFLite runs it.
        samples: 100 random ones, within what the model's operators allow, where none are named.
        options: which TFLite.
        progress: shows how far it is.
        **changes: fields of the options.

    Raises:
        MissingExtraError: TFLite is not installed.
        UnsupportedError: an operator or type without a kernel.
        OracleError: TFLite refuses the model, aborts, or does not answer.
    """
    options = changed(options, changes)
    opened = Oracle(options.package, options.kernels)
    found, file = read_with_content(model)
    chosen = choose_samples(found, samples, count=DEFAULT_SAMPLES)
    content = model_to_bytes(found) if file is None else bytes(file)
    state = options.state or "independent"
    with opened as oracle, progress("verify", chosen.count) as advance:
        if state == "stream" or (options.jobs == 1 and options.scheduler is None):
            verdict = verification.verify(found, content, chosen, oracle, advance, state)
        else:
            judged = Judged(found, content, options.package, options.kernels)
            verdict = verify_parts(judged, chosen, options.jobs, options.scheduler, advance)
    given = SampleOptions() if samples is None else samples
    seed = given.seed if isinstance(given, SampleOptions) and given.is_random else None
    return VerifyResult(name_of(model), verdict, seed, options.strict, wide_multipliers(found))


def _known(known: Sequence[KnownElements]) -> Json:
    return [picked(k, "elements", "reason") for k in known]


def _row(tensor: verification.TensorVerdict) -> Mapping[str, Json]:
    difference = tensor.difference
    first = difference.first
    return {
        **picked(tensor, "index", "name", "dtype", "shape", "operator"),
        **picked(difference, "elements", "differing"),
        "known": _known(tensor.known),
        **picked(difference, "largest", "mismatch"),
        "first": None if first is None else picked(first, "sample", "index", "found", "expected"),
        "unavailable": tensor.unavailable,
    }

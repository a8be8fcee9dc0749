"""`tflq.verify`: comparison of every tensor with TFLite."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tflq.api.options import Progress, SampleOptions, SampleSource, replace_options, silent
from tflq.api.read_model import ModelSource, name_of, read_with_content
from tflq.api.result import Result, select_attributes
from tflq.api.samples import samples as choose_samples
from tflq.converters.tflite import model_to_bytes
from tflq.diagnosis import verify as verification
from tflq.diagnosis.known_differences import KnownElements
from tflq.diagnosis.verify import (
    Judged,
    TensorVerdict,
    Verification,
    find_refusal,
    refused_node,
    truncated,
    verify_parts,
    with_unreached,
)
from tflq.diagnosis.wide_multipliers import WideMultiplier, wide_multipliers
from tflq.errors import UnsupportedError, UsageError
from tflq.graph import Model
from tflq.interpreter.execution.engine import State
from tflq.interpreter.runtimes import REFERENCE, RuntimeName
from tflq.oracle import Oracle
from tflq.oracle.package import RUNTIME_ORACLES, Kernels, Package
from tflq.oracle.results import OracleAborted
from tflq.quoting import Json
from tflq.report import Column, Table, Verdict, identifier, keys, number, word_of
from tflq.report.junit import Case, write_junit
from tflq.units import number as number_text

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tflq.api.keywords import VerifyKeywords

DEFAULT_SAMPLES = 100


@dataclass(frozen=True)
class VerifyOptions:
    """Options of a comparison with TFLite.

    With several jobs, processes import the calling program, which must not start the comparison on import.

    Attributes:
        package: Package with TFLite; auto selects litert, or else tensorflow.
        kernels: Kernels of TFLite: the reference kernels, the optimized ones, or the default ones (with XNNPACK).
        runtime: Runtime to compare with; every runtime except `ref` implies package and kernels.
        state: State handling of stateful models (default: independent).
        strict: True to count known differences (docs/differences/tflite_operators.md), too.
        jobs: Number of processes, each with a separate TFLite; results do not depend on it. Samples of a stream run in
            one process.
        scheduler: Address of a dask scheduler with workers to use instead of processes (extra `cluster`).
    """

    package: Package = "auto"
    kernels: Kernels = "BUILTIN_REF"
    runtime: RuntimeName = REFERENCE
    state: State | None = None
    strict: bool = False
    jobs: int = 1
    scheduler: str | None = None


@dataclass(frozen=True)
class VerifyResult(Result):
    """Differences from TFLite.

    Attributes:
        name: Name of the model.
        verification: Differences of every tensor, and the identity of TFLite.
        seed: Seed of random samples; None for named samples.
        strict: Value of the option.
        wide_multipliers: Layers with results that depend on the processor in TFLite.
    """

    FACTS = (
        Column("model", "model", get="name"),
        Column("oracle", get=lambda r: select_attributes(r.verification.identity, "package", "version", "kernels")),
        Column("", "TFLite", get=lambda r: str(r.verification.identity)),
        Column("samples", "samples", get="verification.samples"),
        Column("seed", "seed"),
        Column("elements", get="verification.total.elements"),
        Column("differing", get="verification.total.differing"),
        Column("known", get=lambda r: _known_report(r.verification.known)),
        Column("unknown", get=lambda r: sum(t.unknown for t in r.verification.compared)),
        Column("equal", get="verification.is_equal"),
        Column("not_compared", get="verification.not_compared"),
        Column("wide_multipliers", get=lambda r: [asdict(w) for w in r.wide_multipliers]),
    )

    name: str
    verification: Verification
    seed: int | None
    strict: bool
    wide_multipliers: tuple[WideMultiplier, ...]

    @property
    def is_right(self) -> bool:
        """Whether no difference counts."""
        return self.verification.is_equal or (self.verification.is_explained and not self.strict)

    @property
    def verdict(self) -> Verdict:
        """Number of elements that differ."""
        verification, total = self.verification, self.verification.total
        unit = f"of {total.elements} elements differ"
        tensors = f"{len(verification.compared)} tensors of {self.name}"
        advice = tensors if verification.compared else "no comparison: TFLite returned no tensor"
        reference = f"TFLite ({verification.identity})"
        return Verdict(word_of(self.is_right), total.differing, unit, reference, verification.samples, advice, " from")

    @property
    def title(self) -> str:
        """The model."""
        return f"{self.name} against TFLite"

    @property
    def notes(self) -> Sequence[str]:
        """Known differences, tensors that were not compared, wide multipliers."""
        known = [f"known: {k.elements} elements, because {k.reason}" for k in self.verification.known]
        lacking = [
            f"not compared: {count} tensors ({reason})" for reason, count in self.verification.not_compared.items()
        ]
        return [*known, *lacking, *map(str, self.wide_multipliers)]

    def tables(self) -> Sequence[Table]:
        """Return a row for each tensor; a terminal lists unequal tensors."""
        tensors = self.verification.tensors
        return [Table("tensors", _TENSORS, tensors, "Tensors", brief=lambda t: not t.difference.is_equal)]

    def write_junit(self, path: str | Path) -> None:
        """Write a JUnit test for each tensor.

        Raises:
            OutputError: The file cannot be written.
        """
        cases = [Case(t.name, self._failure(t), t.unavailable) for t in self.verification.tensors]
        write_junit(Path(path), self.name, cases)

    def _failure(self, tensor: TensorVerdict) -> str | None:
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
    **changes: Unpack[VerifyKeywords],
) -> VerifyResult:
    """Run a model in tflq and in TFLite and compare every tensor bit for bit (NaN equals NaN).

    If tflq refuses an operator because TFLite aborts its process, the operators before it are compared.

    Args:
        model: Model to compare, as TFLite runs it.
        samples: Samples to run (default: 100 random ones, within the range that the model's operators allow).
        options: Package, kernels and runtime.
        progress: Progress callback.
        **changes: Fields of the options, by name.

    Raises:
        MissingExtraError: TFLite is not installed.
        UnsupportedError: An operator or type without a kernel, or the first operator is refused.
        OracleError: TFLite refuses the model, aborts, or does not respond.
    """
    options = replace_options(options, changes)
    package, kernels = _package_and_kernels(options)
    opened = Oracle(package, kernels)
    original, file = read_with_content(model)
    chosen = choose_samples(original, samples, count=DEFAULT_SAMPLES)
    content = model_to_bytes(original) if file is None else bytes(file)
    state = options.state or "independent"
    with opened as oracle, progress("verify", chosen.count) as advance:

        def run(part: Model, file: bytes) -> Verification:
            if state == "stream" or (options.jobs == 1 and options.scheduler is None):
                return verification.verify(part, file, chosen, oracle, advance, state, runtime=options.runtime)
            judged = Judged(part, file, package, kernels, options.runtime)
            return verify_parts(judged, chosen, options.jobs, options.scheduler, advance)

        verdict = _until_refusal(run, lambda part: find_refusal(part, chosen, state), original, content)
    given = SampleOptions() if samples is None else samples
    seed = given.seed if isinstance(given, SampleOptions) and given.is_random else None
    return VerifyResult(name_of(model), verdict, seed, options.strict, wide_multipliers(original))


def _until_refusal(
    run: Callable[[Model, bytes], Verification],
    find: Callable[[Model], UnsupportedError | None],
    model: Model,
    content: bytes,
) -> Verification:
    """Return the verdict of a model, or of the operators before one that aborts TFLite."""
    part, end, reason = model, len(model.main.nodes), ""
    while True:
        try:
            verdict = run(part, content)
        except (UnsupportedError, OracleAborted) as error:
            refusal = error if isinstance(error, UnsupportedError) else find(part)
            node = None if refusal is None else refused_node(part.main, refusal)
            if not node or node >= end:  # no operator before it, or another cause
                raise
            part, end, reason = truncated(model, node), node, str(refusal)
            content = model_to_bytes(part)
        else:
            return verdict if not reason else with_unreached(verdict, model, reason)


def _package_and_kernels(options: VerifyOptions) -> tuple[Package, Kernels]:
    """Return the package and kernels to compare with.

    Raises:
        UsageError: A runtime without a package, or together with kernels or a package.
    """
    if options.runtime == REFERENCE:
        return options.package, options.kernels
    if (options.package, options.kernels) != (VerifyOptions.package, VerifyOptions.kernels):
        raise UsageError("--runtime names the package and its kernels; omit --oracle and --kernels")
    if options.runtime not in RUNTIME_ORACLES:
        has = ", ".join((REFERENCE, *RUNTIME_ORACLES))
        raise UsageError(f"no Python package runs {options.runtime}; verify supports {has}")
    return RUNTIME_ORACLES[options.runtime]


def _known_report(known: Sequence[KnownElements]) -> Json:
    return [select_attributes(k, "elements", "reason") for k in known]


def _largest(tensor: TensorVerdict) -> str:
    return number_text(tensor.difference.largest) if tensor.difference.differing else ""


def _first(tensor: TensorVerdict) -> Json:
    first = tensor.difference.first
    return None if first is None else select_attributes(first, "sample", "index", "found", "expected")


_TENSORS = (
    *keys("index"),
    number("operator", "operator"),
    identifier("name", "tensor"),
    Column("", "type", get=lambda t: f"{t.dtype}[{','.join(map(str, t.shape))}]", rank=2),
    *keys("dtype", "shape"),
    number("differing", "differing", "difference.differing"),
    number("elements", "of", "difference.elements", rank=1),
    Column("known", get=lambda t: _known_report(t.known)),
    number("largest", "largest", "difference.largest", _largest),
    Column("mismatch", get="difference.mismatch"),
    Column("first", "first difference", get=_first, text=lambda t: t.unavailable or t.words),
    *keys("unavailable"),
)

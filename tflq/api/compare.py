"""`tflq.compare`: two models, targets, arithmetics or tensor dumps over the same samples, tensor by tensor."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tflq.api.options import (
    CalibrationOptions,
    Progress,
    SampleOptions,
    SampleSource,
    TargetOptions,
    is_random,
    replace_options,
    silent,
)
from tflq.api.other_runtimes import describe_dump_runtimes, describe_rules, find_dump_runtimes
from tflq.api.read_model import ModelSource
from tflq.api.recovered_layers import RecoveredLayer, recovered_layers
from tflq.api.result import Result, select_attributes
from tflq.api.run_record import record_call
from tflq.api.samples import samples as choose_samples
from tflq.api.sides import Quantizing, Side, parse_side, read_beside
from tflq.api.target import merge_settings
from tflq.diagnosis import compare as comparison
from tflq.diagnosis.compare import Comparison, Dump, Running, dump_as_it_is, require_known
from tflq.diagnosis.compare.causes import Cause
from tflq.diagnosis.compare.dumps import wanted_of
from tflq.diagnosis.dumps.wanted import DumpOptions
from tflq.diagnosis.hypotheses.diagnose import diagnose
from tflq.diagnosis.hypotheses.finding import Diagnosis
from tflq.errors import UsageError
from tflq.files import write_bytes
from tflq.graph import Graph, Model
from tflq.quoting import Json
from tflq.report import Column, Table, Verdict
from tflq.report.comparison import comparison_notes, comparison_tables, comparison_verdict
from tflq.report.diagnosis import diagnosis_table
from tflq.report.memory import memory_table
from tflq.report.model_explorer import node_data

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tflq.api.keywords import CompareKeywords


def with_cause(compared: Comparison, cause: Diagnosis) -> Comparison:
    """Return a comparison with the words of a diagnosis as cause of the tensor that the diagnosis explains."""
    words = Cause("layer", cause.words, cause.advice)
    tensors = tuple(
        replace(
            t,
            cause=words if t.cause is None else replace(words, kind=t.cause.kind),
            group=min(t.group, 1),
            node=t.node or t.name,
        )
        if t.match.first.index == cause.number
        else t
        for t in compared.tensors
    )
    return replace(compared, tensors=tensors)


def explain_line(model: Running, cause: Diagnosis, samples: SampleSource, named: Side) -> str:
    """Return the command that shows every step of the first element that differs."""
    wanted = next((w for w in wanted_of(model) if w.name == cause.tensor or w.tensor.name == cause.tensor), None)
    tensor = cause.tensor if wanted is None or wanted.index is None else str(wanted.index)
    path, target = str(named.source), []
    if named.is_target:
        target = ["-t", named.what]
    index = ",".join(map(str, cause.index))
    words = ["tflq", "explain", path, "--tensor", tensor, "--index", index, "--sample", str(cause.sample)]
    return shlex.join([*words, *_samples(samples), *target])


def _samples(samples: SampleSource) -> list[str]:
    """Return the samples as options of a command; arrays are named as a file to write."""
    if not isinstance(samples, SampleOptions):
        given = (samples,) if isinstance(samples, str) else ()
        return [part for path in given for part in ("-i", path)] or ["-i", "SAMPLES.npy"]
    if samples.is_random:
        return ["-n", str(samples.count), "--seed", str(samples.seed)] if samples.count else ["-i", "SAMPLES.npy"]
    files = [str(path) for path in samples.inputs] if isinstance(samples.inputs, (tuple, list)) else ["SAMPLES.npy"]
    named = [part for path in files for part in ("-i", path)] + ["--real"] * samples.real
    return named if samples.take is None else [*named, "--take", str(samples.take)]


DEFAULT_SAMPLES = 100


@dataclass(frozen=True)
class CompareOptions:
    """Options of a comparison.

    Attributes:
        isolated: True to run each layer of the first side on the second side's tensors, so that only its own error
            remains.
        tolerance: Largest difference that counts as equal, in steps (LSB) of a tensor's scale.
        tensors: Tensors of the first side to compare (default: all).
        diagnose: True to search a dump for the cause of the first wrong layer (docs/guides/diagnosis.md).
        dump: Layout and encoding of a dump, as far as its files do not specify them (docs/guides/dumps.md).
        target: Settings of the sides that are targets.
        calibration: Ranges for the targets.
        jobs: Number of processes that share the samples of two models; results do not depend on it.
        scheduler: Address of a dask scheduler with workers to use instead of processes (extra `cluster`).
        top: Number of layers in the ranking of the text.
    """

    isolated: bool = False
    tolerance: float = 0.0
    tensors: tuple[str, ...] = ()
    diagnose: bool = True
    dump: DumpOptions = DumpOptions()
    target: TargetOptions = field(default_factory=TargetOptions)
    calibration: CalibrationOptions = field(default_factory=CalibrationOptions)
    jobs: int = 1
    scheduler: str | None = None
    top: int = 10


@dataclass(frozen=True)
class CompareResult(Result):
    """Differences of two sides.

    Attributes:
        comparison: Figures of every tensor, and the layers ranked by added noise.
        graph: Graph that the first side ran; None for a dump.
        remarks: Parts of a dump that were omitted or interpreted otherwise; `dumps` lists more.
        diagnosis: Cause of the first wrong layer of a dump; None if no layer is wrong, or without a dump.
        explain_line: `tflq explain` for the first wrong element of that layer.
        recovered: Remarks of recovered files on their layers.
        top: Layers of the ranking that the text lists.
        runtimes: Other runtimes that reproduce a dump; empty if none does, or without a dump.
        remark: Sentence on these runtimes, or the two rules of the first layer in which two runtimes differ.
    """

    FACTS = (
        Column("first", "in question", get="comparison.first"),
        Column("second", "reference", get="comparison.second"),
        Column("samples", "samples", get="comparison.samples"),
        Column("isolated", "layers isolated", get="comparison.isolated"),
        Column("tolerance", get="comparison.tolerance"),
        Column("equal", get="is_equal"),
        Column("known", get=lambda r: [select_attributes(known, "elements", "reason") for known in r.comparison.known]),
        Column("explained", get="is_explained"),
        Column("rounding", get="comparison.is_rounding"),
        Column("first_diverging", get=lambda r: next((t.name for t in r.comparison.diverging), None)),
        Column("first_only", get="comparison.matching.first_only"),
        Column("second_only", get="comparison.matching.second_only"),
        Column("unseen", get="comparison.unseen"),
        Column("notes", get="remarks"),
        Column("runtimes", get="runtimes"),
        Column("remark", get="remark"),
        Column("recovered", get=lambda r: [asdict(layer) for layer in r.recovered]),
        Column("diagnosis", get=lambda r: _diagnosis(r.diagnosis, r.explain_line)),
    )

    MAIN = "tensors"

    comparison: Comparison
    graph: Graph | None
    remarks: tuple[str, ...] = ()
    diagnosis: Diagnosis | None = None
    explain_line: str = ""
    recovered: tuple[RecoveredLayer, ...] = ()
    top: int = CompareOptions.top
    runtimes: tuple[str, ...] = ()
    remark: str = ""

    @property
    def is_equal(self) -> bool:
        """Whether no tensor differs by more than the tolerance."""
        return self.comparison.is_equal

    @property
    def is_explained(self) -> bool:
        """Whether every such difference is a known difference between tflq and TFLite.

        Source: docs/differences/tflite_operators.md.
        """
        return self.comparison.is_explained

    @property
    def verdict(self) -> Verdict:
        """Number of tensors that differ, and the layer to look at first."""
        return comparison_verdict(self.comparison)

    @property
    def status(self) -> int:
        """Exit status of the command: 1 if a tensor differs for an unknown reason, also by rounding only."""
        return int(not (self.is_equal or self.is_explained))

    @property
    def title(self) -> str:
        """Both sides."""
        return f"{self.comparison.first} against {self.comparison.second}"

    @property
    def notes(self) -> Sequence[str]:
        """Known differences, tensors that were not compared, remarks."""
        recovered = [layer.text for layer in self.recovered]
        remark = [self.remark] if self.remark else []
        return [*remark, *comparison_notes(self.comparison), *self.remarks, *recovered]

    def tables(self) -> Sequence[Table]:
        """Return the cause, the ranking, the figures of every tensor, and memory."""
        cause = [] if self.diagnosis is None else [diagnosis_table(self.diagnosis, self.explain_line)]
        memory = [] if self.graph is None else [memory_table(self.graph)]
        return [*cause, *comparison_tables(self.comparison, self.top), *memory]

    def write_node_data(self, path: str | Path) -> None:
        """Write the noise of each tensor as node data of Model Explorer.

        Raises:
            OutputError: The file cannot be written.
        """
        write_bytes(Path(path), node_data(self.comparison))


@record_call
def compare(
    first: ModelSource,
    second: ModelSource = "@float",
    samples: SampleSource = None,
    options: CompareOptions = CompareOptions(),
    *,
    progress: Progress = silent,
    **changes: Unpack[CompareKeywords],
) -> CompareResult:
    """Compare a side with a reference, tensor by tensor, and rank the layers by the noise that they add.

    Args:
        first: Model, "MODEL@float", "MODEL@TARGET", or a tensor dump: a file or folder (docs/guides/dumps.md).
        second: Reference in the same notation; "@float" and "@TARGET" take the model of the first side.
        samples: Samples to run (default: 100 random ones); for a dump the samples that it was recorded with.
        options: Tolerance, settings of targets, diagnosis.
        progress: Progress callback.
        **changes: Fields of the options, by name.

    Raises:
        UsageError: Options without effect, or a side without a model.
        InputError, OptionError, FormatError, UnsupportedError: Sides, samples or settings that do not fit.
    """
    options = replace_options(options, changes)
    quantizing = Quantizing(merge_settings(options.target, options.calibration), options.calibration, progress)
    a, b = parse_side(first), parse_side(second, may_lack_model=True)
    quantizing.refuse_unless(a, b)
    if options.dump != DumpOptions() and not (a.is_dump or b.is_dump):
        raise UsageError("options of a dump need a dump; omit them, or name its file or folder")
    left, right, count = _sides(a, b, samples, options.dump, quantizing)
    if options.tensors:
        require_known(options.tensors, [c.name for c in left.columns], left.name)
    with progress("compare", count) as advance:
        compared = comparison.compare_sides(
            left,
            right,
            count,
            isolated=options.isolated,
            tolerance=options.tolerance,
            only=options.tensors,
            progress=advance,
            jobs=options.jobs,
            scheduler=options.scheduler,
        )
    dumps = [s.understood for s in (left, right) if isinstance(s, Dump) and s.understood is not None]
    notes = tuple(note for understood in dumps for note in understood.notes)
    graph = left.execution.graph if isinstance(left, Running) else None
    told = () if a.is_dump and b.is_dump else recovered_layers((b if a.is_dump else a).model())
    result = CompareResult(compared, graph, notes, recovered=told, top=options.top)
    if isinstance(left, Running) and isinstance(right, Running):
        result = replace(result, remark=describe_rules(compared, left, right))
    model = next((s for s in (left, right) if isinstance(s, Running)), None)
    dump = next((s for s in (left, right) if isinstance(s, Dump)), None)
    is_open = options.diagnose and not (compared.is_equal or compared.is_explained)
    if not is_open or model is None or dump is None:
        return result
    return _diagnose(result, model, dump, count, b if a.is_dump else a, samples, progress)


def _diagnose(
    result: CompareResult,
    model: Running,
    dump: Dump,
    count: int,
    named: Side,
    samples: SampleSource,
    progress: Progress,
) -> CompareResult:
    """Return a result with the runtimes that reproduce the dump, or else with the cause of its first wrong layer.

    Args:
        result: Comparison of the model and the dump.
        model: The model's side.
        dump: The dump.
        count: Number of samples.
        named: The model's side as the user names it.
        samples: Samples as the user names them.
        progress: Shows the progress.
    """
    runtimes = find_dump_runtimes(named.model(), model, dump, count)
    if runtimes:
        return replace(result, runtimes=runtimes, remark=describe_dump_runtimes(runtimes, str(named.source)))
    with progress("look for the cause", 1) as advance:
        cause = diagnose(model, dump, count)
        advance(1)
    if cause is None:
        return result
    line = explain_line(model, cause, samples, named)
    return replace(result, comparison=with_cause(result.comparison, cause), diagnosis=cause, explain_line=line)


def _sides(
    a: Side, b: Side, samples: SampleSource, dump: DumpOptions, quantizing: Quantizing
) -> tuple[comparison.Side, comparison.Side, int]:
    """Return both sides and the number of samples to compare."""
    if a.is_dump and b.is_dump:
        return _dumps(a, b, samples, dump)
    model = (b if a.is_dump else a).model()
    if a.is_dump or b.is_dump:
        return _with_dump(a, b, model, samples, dump, quantizing)
    chosen = choose_samples(model, samples, count=DEFAULT_SAMPLES)
    left = quantizing.running(a, model, chosen, model)
    right = quantizing.running(b, b.model(model), chosen, model)
    return left, right, chosen.count


def _dumps(a: Side, b: Side, samples: SampleSource, dump: DumpOptions) -> tuple[Dump, Dump, int]:
    """Return two dumps; their first axes are the samples."""
    options = samples if isinstance(samples, SampleOptions) else SampleOptions()
    if not is_random(samples):
        raise UsageError("--input needs a model; both sides are dumps")
    left, right = (dump_as_it_is(side.archive(dump)) for side in (a, b))
    require_known([c.name for c in left.columns], [c.name for c in right.columns], right.name)
    return left, right, options.count or min(left.count, right.count)


def _with_dump(
    a: Side, b: Side, model: Model, samples: SampleSource, options: DumpOptions, quantizing: Quantizing
) -> tuple[comparison.Side, comparison.Side, int]:
    """Return a dump and its model on the samples of the dump."""
    given, named = (a if a.is_dump else b), b if a.is_dump else a
    side, dump = read_beside(given, named, model, samples, options, quantizing)
    count = min(dump.count, side.samples.count)
    return (dump, side, count) if a.is_dump else (side, dump, count)


def _diagnosis(found: Diagnosis | None, line: str) -> dict[str, Json] | None:
    if found is None:
        return None
    facts = select_attributes(found, "tensor", "node", "operator", "status", "words", "advice", "differing", "elements")
    evidence = ("hypothesis", "words", "place", "remaining", "elements", "share", "gain", "is_certain", "layers")
    figures = (*evidence, "alike", "advice", "anchor")
    return {
        **facts,
        "place": _place(found),
        "form": select_attributes(found.form, "names", "sentences", "correlation"),
        "first": {"sample": found.sample, "index": found.index, "dump": found.got, "expected": found.wanted},
        "explain": line,
        **select_attributes(
            found, "first_sample", "samples", "inputs_seen", "tried", "without_effect", "untried", "failed"
        ),
        **select_attributes(found, "is_linear", "segment"),
        "found": [select_attributes(f, *figures) for f in found.found],
        "later": found.later,
        "others": [_diagnosis(other, "") for other in found.others],
    }


def _place(found: Diagnosis) -> dict[str, Json]:
    parts = [
        {"axis": part.name, "size": part.size, "indices": part.indices.tolist(), "inside": part.inside}
        for part in found.place.parts
    ]
    return {
        "words": found.place.words,
        "parts": parts,
        **select_attributes(found.place, "whole", "scattered", "first", "last"),
    }

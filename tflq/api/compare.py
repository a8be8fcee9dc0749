"""`tflq.compare`: two models, targets, arithmetics or tensor dumps over the same samples, tensor by tensor."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from tflq.api.options import (
    CalibrationOptions,
    Progress,
    SampleOptions,
    SampleSource,
    TargetOptions,
    changed,
    is_random,
    silent,
)
from tflq.api.read_model import ModelSource
from tflq.api.recovered_layers import RecoveredLayer, recovered_layers
from tflq.api.result import PageResult, TableResult, picked
from tflq.api.run_record import recorded
from tflq.api.samples import samples as choose_samples
from tflq.api.sides import Quantizing, Side, parse_side, read_beside
from tflq.api.target import complete
from tflq.diagnosis import compare as comparison
from tflq.diagnosis.compare import ComparedTensor, Comparison, Dump, Running, dump_as_it_is, require_known
from tflq.diagnosis.compare.causes import Cause
from tflq.diagnosis.compare.dumps import wanted_of
from tflq.diagnosis.compare.tally import TensorFigures
from tflq.diagnosis.dumps.wanted import DumpOptions
from tflq.diagnosis.hypotheses.diagnose import diagnose
from tflq.diagnosis.hypotheses.finding import Diagnosis
from tflq.errors import UsageError
from tflq.files import write_bytes
from tflq.graph import Graph, Model
from tflq.quoting import Json
from tflq.report import Page
from tflq.report.comparison import comparison_page, verdict
from tflq.report.diagnosis import diagnosis_section
from tflq.report.model_explorer import node_data


def with_cause(found: Comparison, cause: Diagnosis) -> Comparison:
    """Return a comparison whose tensor that is wrong by itself has its cause in the words of the diagnosis."""
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
        for t in found.tensors
    )
    return replace(found, tensors=tensors)


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
    """Return the samples as options of a command; what is no file is named as one to write."""
    if not isinstance(samples, SampleOptions):
        given = (samples,) if isinstance(samples, str) else ()
        return [part for path in given for part in ("-i", path)] or ["-i", "SAMPLES.npy"]
    if samples.is_random:
        return ["-n", str(samples.count), "--seed", str(samples.seed)] if samples.count else ["-i", "SAMPLES.npy"]
    files = [str(path) for path in samples.inputs] if isinstance(samples.inputs, (tuple, list)) else ["SAMPLES.npy"]
    return [part for path in files for part in ("-i", path)] + ["--real"] * samples.real


DEFAULT_SAMPLES = 100
_NESTED = ("histogram", "channels", "first", "worst")


@dataclass(frozen=True)
class CompareOptions:
    """How two sides are compared.

    Attributes:
        isolated: feed each layer of the first side with the second one's tensors: its own error alone.
        tolerance: differences up to so many steps of a tensor's scale do not count.
        tensors: compare these tensors of the first side only; all where it is empty.
        diagnose: with a dump: look for the cause in the first layer that is wrong by itself (docs/diagnosis.md).
        dump: what is known of a dump that it does not tell itself (docs/dumps.md).
        target: settings of the sides that are targets.
        calibration: their ranges.
        jobs: processes that share the samples of two models.
        scheduler: address of a dask scheduler whose workers are used instead.
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


@dataclass(frozen=True)
class CompareResult(PageResult, TableResult):
    """What differs between two sides.

    Attributes:
        comparison: figures of every tensor, and the layers ranked by what they add.
        graph: that the first side ran; None for a dump.
        notes: what of a dump was passed over or taken otherwise; `dumps` tells more.
        diagnosis: why the first layer of a dump that is wrong by itself is wrong; None where none is, or without one.
        explain_line: the command that shows the first element of that layer that differs.
        recovered: what recovered files say of their layers.
    """

    comparison: Comparison
    graph: Graph | None
    notes: tuple[str, ...] = ()
    diagnosis: Diagnosis | None = None
    explain_line: str = ""
    recovered: tuple[RecoveredLayer, ...] = ()

    @property
    def is_equal(self) -> bool:
        """Whether no tensor differs by more than the tolerance."""
        return self.comparison.is_equal

    @property
    def is_explained(self) -> bool:
        """Whether every such difference is one that tflq is known to have from TFLite (docs/operators.md)."""
        return self.comparison.is_explained

    @property
    def verdict(self) -> str:
        """What came out, in one sentence."""
        return verdict(self.comparison)

    def report(self) -> Mapping[str, Json]:
        """Return the verdict, the ranking and the figures of every tensor."""
        found = self.comparison
        return {
            **picked(found, "first", "second", "samples", "isolated", "tolerance"),
            "equal": found.is_equal,
            "known": [picked(known, "elements", "reason") for known in found.known],
            "explained": found.is_explained,
            "verdict": self.verdict,
            "first_diverging": found.diverging[0].name if found.diverging else None,
            "ranking": [_ranked(t) for t in found.ranking],
            "tensors": [_tensor(t) for t in found.tensors],
            **picked(found.matching, "first_only", "second_only"),
            "unseen": found.unseen,
            "notes": self.notes,
            "recovered": [asdict(layer) for layer in self.recovered],
            "diagnosis": None if self.diagnosis is None else _diagnosis(self.diagnosis, self.explain_line),
        }

    def rows(self) -> Sequence[Mapping[str, Json]]:
        """Return the figures of every tensor that are plain numbers."""
        tensors = [_tensor(t) for t in self.comparison.tensors]
        return [{key: value for key, value in t.items() if key not in _NESTED} for t in tensors]

    def page(self) -> Page:
        """Return the page: the layer to look at, the error along the network, the worst tensors, memory."""
        found = self.diagnosis
        cause = None if found is None else diagnosis_section(found, self.explain_line)
        told = tuple(layer.text for layer in self.recovered)
        return comparison_page(self.comparison, self.graph, cause, told)

    def write_node_data(self, path: str | Path) -> None:
        """Write the noise of each tensor as node data of Model Explorer.

        Raises:
            OutputError: the file cannot be written.
        """
        write_bytes(Path(path), node_data(self.comparison))


@recorded
def compare(
    first: ModelSource,
    second: ModelSource = "@float",
    samples: SampleSource = None,
    options: CompareOptions = CompareOptions(),
    *,
    progress: Progress = silent,
    **changes: object,
) -> CompareResult:
    """Compare a side with a reference, tensor by tensor, and rank the layers by what they add.

    Args:
        first: a model, "MODEL@float", "MODEL@TARGET", or a tensor dump: a file or folder (docs/dumps.md).
        second: the same; "@float" and "@TARGET" take the first one's model.
        samples: to run on, 100 random ones where none are named; for a dump those that it is a dump of.
        options: what counts as a difference, how targets quantize.
        progress: shows how far it is.
        **changes: fields of the options.

    Raises:
        UsageError: options that nothing would use, a side that names no model.
        InputError, OptionError, FormatError, UnsupportedError: sides, samples or settings that do not fit.
    """
    options = changed(options, changes)
    quantizing = Quantizing(complete(options.target, options.calibration), options.calibration, progress)
    a, b = parse_side(first), parse_side(second, may_lack_model=True)
    quantizing.refuse_unless(a, b)
    if options.dump != DumpOptions() and not (a.is_dump or b.is_dump):
        raise UsageError("options of a dump are given, and no dump; leave them away, or name its file or folder")
    left, right, count = _sides(a, b, samples, options.dump, quantizing)
    if options.tensors:
        require_known(options.tensors, [c.name for c in left.columns], left.name)
    with progress("compare", count) as advance:
        found = comparison.compare_sides(
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
    result = CompareResult(found, graph, notes, recovered=told)
    if not options.diagnose or found.is_equal or found.is_explained:
        return result
    model = next((s for s in (left, right) if isinstance(s, Running)), None)
    dump = next((s for s in (left, right) if isinstance(s, Dump)), None)
    cause = None if model is None or dump is None else _looked_for(model, dump, count, progress)
    if model is None or cause is None:
        return result
    line = explain_line(model, cause, samples, b if a.is_dump else a)
    return replace(result, comparison=with_cause(found, cause), diagnosis=cause, explain_line=line)


def _looked_for(model: Running, dump: Dump, samples: int, progress: Progress) -> Diagnosis | None:
    with progress("look for the cause", 1) as advance:
        cause = diagnose(model, dump, samples)
        advance(1)
    return cause


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
    """Return two dumps, whose first axes are the samples."""
    options = samples if isinstance(samples, SampleOptions) else SampleOptions()
    if not is_random(samples):
        raise UsageError("--input is for models; both sides are dumps")
    left, right = (dump_as_it_is(side.archive(dump)) for side in (a, b))
    require_known([c.name for c in left.columns], [c.name for c in right.columns], right.name)
    return left, right, options.count or min(left.count, right.count)


def _with_dump(
    a: Side, b: Side, model: Model, samples: SampleSource, options: DumpOptions, quantizing: Quantizing
) -> tuple[comparison.Side, comparison.Side, int]:
    """Return a dump and the model that it is a dump of, on the dump's samples."""
    given, named = (a if a.is_dump else b), b if a.is_dump else a
    side, dump = read_beside(given, named, model, samples, options, quantizing)
    count = min(dump.count, side.samples.count)
    return (dump, side, count) if a.is_dump else (side, dump, count)


def _diagnosis(found: Diagnosis, line: str) -> dict[str, Json]:
    facts = picked(found, "tensor", "node", "operator", "status", "words", "advice", "differing", "elements")
    figures = ("hypothesis", "words", "remaining", "elements", "share", "layers", "alike", "advice", "anchor")
    return {
        **facts,
        "first": {"sample": found.sample, "index": found.index, "dump": found.got, "expected": found.wanted},
        "explain": line,
        **picked(found, "first_sample", "samples", "inputs_seen", "tried", "without_effect", "untried", "correlation"),
        "found": [picked(f, *figures) for f in found.found],
        "later": found.later,
    }


def _ranked(tensor: ComparedTensor) -> dict[str, Json]:
    cause = tensor.cause
    return {
        **picked(tensor, "node", "operator"),
        "tensor": tensor.name,
        "channel": tensor.channel,
        "added_noise": tensor.added,
        "cause": None if cause is None else cause.kind,
        "words": None if cause is None else cause.words,
        "advice": None if cause is None else cause.advice,
    }


def _tensor(tensor: ComparedTensor) -> dict[str, Json]:
    return {"name": tensor.name, "reference": tensor.match.second.name, "node": tensor.node, **_figures(tensor.figures)}


def _figures(f: TensorFigures) -> dict[str, Json]:
    return {
        **picked(f, "elements", "differing", "lsb"),
        "largest_lsb": f.largest,
        **picked(f, "rms_lsb", "histogram", "cosine", "sqnr_db", "saturated", "clipped", "clipped_noise", "unused"),
        "same_encoding": f.same_encoding,
        "channels": [{"channel": c, "largest_lsb": largest, "differing": n} for c, largest, n in f.channels[:16]],
        "first": None if f.first_place is None else asdict(f.first_place),
        "worst": None if f.worst_place is None else asdict(f.worst_place),
    }

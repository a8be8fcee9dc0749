"""`tflq.convert`: files of a model for one target or all, and the similarity of each layer to floating point."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from tflq.api.calibrate import calibrate
from tflq.api.options import (
    CalibrationOptions,
    Progress,
    SampleOptions,
    SampleSource,
    TargetOptions,
    replace_options,
    silent,
)
from tflq.api.read_model import ModelSource, name_of, read_model
from tflq.api.recover import RecoverOptions, recover_ranged, require_named
from tflq.api.recovered_layers import METADATA
from tflq.api.result import Result, select_attributes
from tflq.api.run_record import record_call
from tflq.api.samples import samples_or_calibration, why_not_compared
from tflq.api.target import choose_target, fill_calibration, fits_weights, merge_settings
from tflq.benchmarks.all_targets import TargetRow, summarize
from tflq.benchmarks.scoring import load_named
from tflq.converters.engines import EngineChoices
from tflq.converters.settings import Settings
from tflq.converters.targets import Artifacts, Target, find_target, target_names, targets_with
from tflq.converters.template import template_bytes
from tflq.diagnosis.similarity import Similarities, Similarity, measured_similarities
from tflq.emit.written import EmittedDifference, check_emitted
from tflq.errors import OptionError, UsageError
from tflq.files import output_folder, write_bytes
from tflq.graph import ABSENT, Affine, Graph, Logarithmic, Model, Node
from tflq.graph.rewriting import Change, select_changes, trace_passes
from tflq.parallel.executions import as_is, for_target
from tflq.precision.recover import RealSamples
from tflq.quoting import Json
from tflq.report import Column, Table, Verdict, identifier, keys, number
from tflq.report.conversion import (
    all_targets_table,
    all_targets_verdict,
    closeness,
    conversion_verdict,
    emitted_text,
    engine_table,
    targets_by_layer,
    worst_layer,
)
from tflq.report.estimate import figure
from tflq.report.memory import memory_table
from tflq.sampling import GivenSamples, Samples
from tflq.units import number as number_text
from tflq.units import size

DEFAULT_SAMPLES = 32


@dataclass(frozen=True)
class ConvertOptions:
    """Options of a conversion.

    Attributes:
        calibration: Ranges of the tensors.
        engine: Choice of engines: auto, by the cycles of the target's estimate, with a report of the gain (default: the
            engines of the settings).
        recover: True to recover the weights first, with named samples (docs/guides/recover.md); a setting may request
            it, too.
        trace_passes: True to list the lines of the graph that each pass of the target changes.
        passes: Names of the passes to list (default: all that change the graph).
    """

    calibration: CalibrationOptions = field(default_factory=CalibrationOptions)
    recover: bool = False
    engine: Literal["auto"] | None = None
    trace_passes: bool = False
    passes: tuple[str, ...] = ()


@dataclass(frozen=True)
class LayerFacts:
    """A target's facts on a layer.

    Attributes:
        engine: Engine that runs the layer; empty if the target has a single engine.
        reason: Reason for the choice of the engine; empty without a choice.
        weight_bits: Bits of the weights; None without weights.
        departure: Reason why the device's result differs from the correct one; empty if it does not.
    """

    engine: str
    reason: str
    weight_bits: int | None
    departure: str


@dataclass(frozen=True)
class _Layer:
    """A layer of a conversion: number and node."""

    result: ConvertResult
    index: int
    node: Node

    @property
    def similarity(self) -> Similarity | None:
        """Similarity to floating point."""
        return self.result.similarity(self.node)

    @property
    def facts(self) -> LayerFacts:
        """Engine, reason, bits."""
        return self.result.facts(self.node)

    @property
    def outputs(self) -> str:
        """Types and shapes of the outputs."""
        tensors = [self.result.graph.tensors[t] for t in self.node.outputs]
        return ", ".join(f"{t.dtype.value}[{','.join(map(str, t.shape))}]" for t in tensors)

    @property
    def largest_lsb(self) -> float | None:
        """Largest difference between the emitted .tflite in TFLite and the target."""
        compared = self.result.compared
        tensors = {} if compared is None or isinstance(compared, str) else compared.tensors
        return max((tensors[t].largest_lsb for t in self.node.outputs if t in tensors), default=None)

    @property
    def requantized_text(self) -> str:
        """Share of quantized values that differ, and the largest difference."""
        figures = self.similarity
        if figures is None or math.isnan(figures.differing):
            return ""
        return f"{100 * figures.differing:.2f}%, {number_text(figures.largest)}"


_LAYERS = (
    number("index", "#"),
    Column("operator", "operator", get="node.operator", rank=1),
    identifier("name", "layer", "node.name"),
    Column("engine", "engine", get="facts.engine", rank=2),
    Column("reason", get="facts.reason"),
    number("weight_bits", "weights", "facts.weight_bits", lambda row: _bits(row), rank=4),
    Column("departure", get="facts.departure"),
    Column("", "output", get="outputs", rank=3),
    number("similarity", "cosine", lambda r: r.similarity and r.similarity.figures, lambda r: _cosine(r)),
    number("", "requantized", "requantized_text", rank=5),
    number("", "TFLite", "largest_lsb", unit="LSB", rank=6),
    Column("", "reason", get="facts.reason", rank=7),
)


def _bits(layer: _Layer) -> str:
    bits = layer.facts.weight_bits
    return f"{bits} bits" if bits else ""


def _changed_lines(changes: Sequence[Change]) -> Iterator[str]:
    """Yield name and reason of each pass, and the lines before (-) and after (+)."""
    for change in changes:
        source = f" ({change.source})" if change.source else ""
        yield f"pass {change.name} of {change.owner}: {change.why}{source}"
        yield from (f"  - {line}" for line in change.before)
        yield from (f"  + {line}" for line in change.after)


def _cosine(layer: _Layer) -> str:
    return "" if layer.similarity is None else f"{layer.similarity.cosine:.6f}"


@dataclass(frozen=True)
class ConvertResult(Result):
    """Files and layers of a conversion.

    Attributes:
        model: Name of the model in reports.
        original: Model before the conversion.
        target: Target of the conversion.
        settings: Complete settings.
        ranged: Model with the ranges that the target used.
        graph: Quantized and lowered graph of the target.
        folder: Output folder; None if no files were written.
        artifacts: File name -> content.
        compared: Difference between the emitted .tflite in TFLite and the target; None without one, or the reason why
            it was not compared.
        measured: Similarity of each layer to floating point, or the reason why it was not measured.
        engines: Choice of engines by the estimate; None unless requested.
        changes: Effects of the target's passes, in order; empty unless `trace_passes` is set.
    """

    FACTS = (
        Column("model", "model"),
        Column("target", "target", get="target.name"),
        Column("departures", get=lambda r: dict(r.departures)),
        Column("engines", get=lambda r: None if r.engines is None else _engines(r.engines)),
        Column("files"),
        Column("emitted_tflite", get=lambda r: compared_report(r.compared)),
        Column(
            "similarity",
            get=lambda r: r.measured if isinstance(r.measured, str) else select_attributes(r.measured, "samples"),
        ),
    )

    model: str
    original: Model
    target: Target
    settings: Settings
    ranged: Model
    graph: Graph
    folder: Path | None
    artifacts: Artifacts
    compared: EmittedDifference | str | None
    measured: Similarities | str
    engines: EngineChoices | None = None
    changes: tuple[Change, ...] = ()

    @property
    def files(self) -> dict[str, int]:
        """Path of each file -> its bytes."""
        return {str((self.folder or Path()) / name): len(data) for name, data in self.artifacts.items()}

    def similarity(self, node: Node) -> Similarity | None:
        """Return the similarity of a layer's output to floating point; None if it was not measured."""
        return None if isinstance(self.measured, str) else self.measured.of(node)

    def facts(self, node: Node) -> LayerFacts:
        """Return the target's facts on a layer."""
        weights = self.graph.tensors[node.inputs[1]] if len(node.inputs) > 1 and node.inputs[1] != ABSENT else None
        affine = weights.quantization if weights is not None and weights.is_constant else None
        engine = self._engines.get(next(iter(node.outputs), ABSENT), "")
        reason = node.attributes.text("engine_reason", "")
        bits = affine.bits if isinstance(affine, (Affine, Logarithmic)) else None
        return LayerFacts(engine, reason, bits, self.departures.get(node.name, ""))

    @cached_property
    def _engines(self) -> Mapping[int, str]:
        return self.target.engines(self.graph)

    @cached_property
    def departures(self) -> Mapping[str, str]:
        """Name of a layer or of a file's operator -> reason why the device's result differs, or no tool reads it."""
        return {**self.target.file_departures(self.original.main), **self.target.departures(self.graph)}

    @property
    def verdict(self) -> Verdict:
        """Number of operators, and the layer farthest from floating point."""
        return conversion_verdict(self.target.name, len(self.graph.nodes), self.measured)

    @property
    def title(self) -> str:
        """Model and target."""
        return f"{self.model} for {self.target.name}"

    @property
    def notes(self) -> Sequence[str]:
        """Files, warnings, and how the layers were compared."""
        files = [f"{path}: {size(length)}" for path, length in self.files.items()]
        warnings = [f"warning: {layer}: {reason}" for layer, reason in self.departures.items()]
        return [*warnings, *files, emitted_text(self.compared), closeness(self.measured)]

    def tables(self) -> Sequence[Table]:
        """Return the layers, the choice of engines, the effects of passes, and memory."""
        worst, layers = worst_layer(self.measured), [_Layer(self, *item) for item in enumerate(self.graph.nodes)]
        engines = [] if self.engines is None else [engine_table(self.engines)]
        return [
            Table("layers", _LAYERS, layers, "Layers", marked=lambda row: row.similarity is worst is not None),
            *engines,
            Table(
                "passes",
                keys("name", "owner", "why", "source", "before", "after"),
                self.changes,
                terminal="on request",
                lines=list(_changed_lines(self.changes)) or ["no pass changed the graph"],
            ),
            memory_table(self.graph),
        ]

    def write_settings(self, path: str | Path) -> None:
        """Write the settings as the vendor's tool reads them, for the files of this conversion.

        Raises:
            UsageError: the target's tool has no such file.
            FormatError: settings that the tool does not have.
        """
        if self.target.tool_settings is None:
            raise UsageError(f"target {self.target.name}: its tool has no file of settings that could be written")
        write_bytes(Path(path), self.target.tool_settings(self.settings, list(self.artifacts)).encode())

    def write_template(self, path: str | Path) -> None:
        """Write the settings, ranges and figures of each layer, as an editable file for `calibration.template`.

        Raises:
            OutputError: the file cannot be written.
        """
        write_template(path, self.target, self.settings, self.ranged, self.measured)


@dataclass(frozen=True)
class ConvertAllResult(Result):
    """The targets that take a model, and their scores.

    Attributes:
        model: Name of the model in reports.
        folder: Output folder with a folder for each target; None if no files were written.
        targets: One row per target.
        samples: Number of samples that the layers were compared on.
        is_accuracy: True if the score is an accuracy, False if it is the agreement with the unchanged model.
    """

    FACTS = (Column("model", "model"), Column("folder", get=lambda r: str(r.folder)))

    model: str
    folder: Path | None
    targets: tuple[TargetRow, ...]
    samples: int
    is_accuracy: bool

    @property
    def is_complete(self) -> bool:
        """Whether every target takes the model."""
        return not any(row.refused for row in self.targets)

    @property
    def score(self) -> str:
        """Name of the score."""
        return "accuracy" if self.is_accuracy else "agreement"

    @property
    def verdict(self) -> Verdict:
        """Number of targets that take the model, and the lowest score."""
        return all_targets_verdict(self.targets, self.score, self.samples)

    @property
    def title(self) -> str:
        """The model."""
        return f"{self.model} for every target"

    def tables(self) -> Sequence[Table]:
        """Return one row per target."""
        by_target = all_targets_table(self.targets, is_accuracy=self.is_accuracy, samples=self.samples)
        return [by_target, targets_by_layer(self.targets)]


@record_call
def convert(
    model: ModelSource,
    target: TargetOptions | str,
    folder: str | os.PathLike[str] | None = None,
    samples: SampleSource = None,
    options: ConvertOptions = ConvertOptions(),
    *,
    progress: Progress = silent,
    **changes: object,
) -> ConvertResult:
    """Quantize a model for a target and write its files: all of them, or none after an error.

    Each layer's result is compared with floating point. The emitted .tflite also runs in TFLite and is compared with
    the target's own arithmetic, if ai-edge-litert or tensorflow is installed. Both comparisons are omitted on unnamed
    samples if they take more than `UNREQUESTED_MACS` multiply-accumulates. Without a folder no files are written.

    Args:
        model: Model to convert.
        target: Target with its settings, or its name.
        folder: Output folder; created if missing.
        samples: Samples to compare on (default: samples of the calibration, or 32 random ones).
        options: Calibration, recovery, engines.
        progress: Progress callback.
        **changes: Fields of the options, by name.

    Raises:
        UsageError, OptionError, InputError, FormatError: Options, samples or files that do not fit.
        UnsupportedError: Operators that the target does not support; the message lists all of them.
        OutputError: The files cannot be written.
    """
    options = replace_options(options, changes)
    options = replace(options, calibration=fill_calibration(target, options.calibration))
    wanted = merge_settings(target, options.calibration)
    original = read_model(model)
    chosen = samples_or_calibration(original, samples, options.calibration, DEFAULT_SAMPLES)
    ranged = calibrate(original, options.calibration, progress=progress)
    chosen_target, settings = choose_target(wanted.name or "", wanted, recovers=True)
    engines = None if options.engine is None else _choose_engines(options.engine, chosen_target, ranged.main, settings)
    settings = settings if engines is None else engines.settings
    if options.recover or fits_weights(settings):
        ranged, chosen = _recover_model(original, ranged, (chosen_target, settings), wanted, samples, options)
    with trace_passes() if options.trace_passes else nullcontext(list[Change]()) as trace:
        execution = for_target(ranged.main, chosen_target, settings)
    selected = select_changes(trace, options.passes)
    with nullcontext() if folder is None else output_folder(folder) as scratch:
        artifacts = _artifacts(chosen_target, execution.graph, ranged)
        skipped = why_not_compared(execution.graph, chosen, samples)
        compared = skipped or check_emitted(execution, artifacts, chosen)
        if scratch is not None:
            _write(scratch, artifacts)
    measured: Similarities | str = skipped
    if not skipped:
        with progress("compare", chosen.count) as advance:
            measured = measured_similarities(execution, ranged, chosen, advance)
    where = None if folder is None else Path(folder)
    name, graph = name_of(model), execution.graph
    return ConvertResult(
        name, original, chosen_target, settings, ranged, graph, where, artifacts, compared, measured, engines, selected
    )


@record_call
def convert_all(
    model: ModelSource,
    folder: str | os.PathLike[str] | None = None,
    samples: SampleSource = None,
    options: ConvertOptions = ConvertOptions(),
    *,
    progress: Progress = silent,
    **changes: object,
) -> ConvertAllResult:
    """Quantize a model for every target with its defaults, write a folder for each, and compare them.

    If a target refuses the model, its row states the reason. Arguments and errors as for `convert`.
    """
    options = replace_options(options, changes)
    original = read_model(model)
    if options.engine is not None:
        raise UsageError("--engine auto needs a single target; --target all uses the defaults of each")
    chosen = samples_or_calibration(original, samples, options.calibration, DEFAULT_SAMPLES)
    ranged = calibrate(original, options.calibration, progress=progress)
    labeled = None
    if isinstance(samples, SampleOptions) and samples.data is not None:
        labeled = load_named(samples.data, original.main)
    names, reference, rows = target_names(), as_is(original), []
    with progress("convert", len(names)) as advance:
        for name in names:
            rows.append(summarize(reference, ranged, find_target(name), chosen, labeled))
            advance(1)
    if folder is not None:
        with output_folder(folder) as scratch:
            for row in rows:
                if not row.refused:
                    (scratch / row.target).mkdir()
                    _write(scratch / row.target, row.artifacts)
    where = None if folder is None else Path(folder)
    return ConvertAllResult(name_of(model), where, tuple(rows), chosen.count, labeled is not None)


def _artifacts(target: Target, graph: Graph, ranged: Model) -> Artifacts:
    """Return the target's files; a recovered model adds the record of its recovery."""
    about = ranged.metadata.get(METADATA)
    files = target.emit(graph, ranged)
    return files if about is None else {**files, "recovered.json": bytes(about)}


def _recover_model(
    original: Model,
    ranged: Model,
    target: tuple[Target, Settings],
    wanted: TargetOptions,
    samples: SampleSource,
    options: ConvertOptions,
) -> tuple[Model, Samples]:
    """Return the recovered float model with its ranges, and the samples for it."""
    require_named(samples, options.calibration.has_samples)
    opened = samples_or_calibration(original, samples, options.calibration, 0, all_given=True)
    given = GivenSamples(opened.take(0, opened.count))
    recovered = recover_ranged((original, ranged), *target, wanted, given, RecoverOptions())
    floats = RealSamples(given, original.main, recovered.model.main)
    return recovered.model, GivenSamples(floats.take(0, floats.count))


def write_template(
    path: str | Path, target: Target, settings: Settings, ranged: Model, measured: Similarities | str
) -> None:
    """Write the template of a conversion, with the figures of each layer."""
    figures = {} if isinstance(measured, str) else {s.source: s.figures for s in measured.tensors}
    write_bytes(Path(path), template_bytes(target.name, target.settings, settings, ranged.main, figures))


def compared_report(compared: EmittedDifference | str | None) -> Json:
    """Return a comparison with TFLite: an object, None without a .tflite, or the words why it could not be done."""
    if compared is None or isinstance(compared, str):
        return compared
    return {
        "oracle": str(compared.identity),
        "samples": compared.samples,
        **select_attributes(compared.output, "elements", "differing", "largest_lsb"),
        "tensors": {str(t): select_attributes(s, "differing", "largest_lsb") for t, s in compared.tensors.items()},
    }


def _choose_engines(engine: str, target: Target, graph: Graph, settings: Settings) -> EngineChoices:
    if engine != "auto":
        raise UsageError(f"engine '{engine}': allowed is auto")
    if target.choose_engines is None:
        allowed = ", ".join(targets_with("choose_engines"))
        raise OptionError(f"target {target.name} has a single engine; --engine auto needs one of {allowed}")
    return target.choose_engines(graph, settings)


def _engines(found: EngineChoices) -> Json:
    layers = [
        {**select_attributes(layer, "index", "name", "engine", "tried", "setting"), "saved": figure(layer.saved)}
        for layer in found.layers
    ]
    return {"before": figure(found.before), "after": figure(found.after), "layers": layers}


def _write(folder: Path, artifacts: Artifacts) -> None:
    for name, data in artifacts.items():
        (folder / name).write_bytes(data)

"""`tflq.convert`: a model's files for a target, or for every target, and how close each layer is to floating point."""

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
from tflq.api.micro_arena import describe_arena
from tflq.api.options import CalibrationOptions, Progress, SampleOptions, SampleSource, TargetOptions, changed, silent
from tflq.api.read_model import ModelSource, name_of, read_model
from tflq.api.recover import RecoverOptions, recover_ranged, require_named
from tflq.api.recovered_layers import METADATA
from tflq.api.result import Result, picked
from tflq.api.run_record import recorded
from tflq.api.samples import samples_or_calibration, why_not_compared
from tflq.api.target import calibration_of, choose_target, complete, fits_weights
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
    differences_table,
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
    """How a model is converted.

    Attributes:
        calibration: ranges of its tensors.
        engine: "auto" to choose the engine of each layer by the target's estimate of cycles; the settings' unless told.
        recover: first recover the weights with the samples, which must be named; a setting may ask for it, too.
        trace_passes: True to record the lines of the graph that each pass of the target changes.
        passes: Names of the passes to record; empty for all.
    """

    calibration: CalibrationOptions = field(default_factory=CalibrationOptions)
    recover: bool = False
    engine: Literal["auto"] | None = None
    trace_passes: bool = False
    passes: tuple[str, ...] = ()


@dataclass(frozen=True)
class LayerFacts:
    """What a target says of a layer.

    Attributes:
        engine: what runs it, and `reason` why; empty where a target has one only.
        reason: see `engine`.
        weight_bits: of its weights.
        departure: why the device's result differs from the right one; empty where it does not.
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
    def requantized(self) -> str:
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
    number("", "requantized", "requantized", rank=5),
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
        model: how reports call it.
        original: the model as it was given.
        target: that it was converted for.
        settings: complete.
        ranged: the model with the ranges that the target quantized it by.
        graph: the target's, lowered.
        folder: where the files are; None where none were written.
        artifacts: file name -> content.
        compared: the emitted .tflite in TFLite against the target; None without one, or why it was not compared.
        measured: each layer against floating point, or why that was not measured.
        engines: what the choice of engines by the estimate came to; None where it was not asked for.
        changes: Effects of the target's passes, in order; empty unless `trace_passes` is set.
        arena: Sentence on the arena of TensorFlow Lite Micro; empty for other targets.
    """

    MAIN = "layers"

    FACTS = (
        Column("model", "model"),
        Column("target", "target", get="target.name"),
        Column("departures", get=lambda r: dict(r.departures)),
        Column("engines", get=lambda r: None if r.engines is None else _engines(r.engines)),
        Column("files"),
        Column("micro_arena", get=lambda r: r.arena or None),
        Column("emitted_tflite", get=lambda r: compared_report(r.compared)),
        Column(
            "similarity", get=lambda r: r.measured if isinstance(r.measured, str) else picked(r.measured, "samples")
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
    arena: str = ""

    @property
    def files(self) -> dict[str, int]:
        """Path of each file -> its bytes."""
        return {str((self.folder or Path()) / name): len(data) for name, data in self.artifacts.items()}

    def similarity(self, node: Node) -> Similarity | None:
        """Return how close a layer's output is to floating point; None where that was not measured."""
        return None if isinstance(self.measured, str) else self.measured.of(node)

    def facts(self, node: Node) -> LayerFacts:
        """Return what the target put down on a layer."""
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
        """Name of a layer, an operator of the file, or "" for the model -> what the vendor's tool does otherwise."""
        of_file = self.target.file_departures(self.original.main, self.settings)
        of_graph = self.target.departures(self.graph)
        names = dict.fromkeys((*of_file, *of_graph))
        return {name: "; ".join(filter(None, (of_file.get(name), of_graph.get(name)))) for name in names}

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
        """Files, and how the layers were compared."""
        files = [f"{path}: {size(length)}" for path, length in self.files.items()]
        arena = [self.arena] if self.arena else []
        return [*files, *arena, emitted_text(self.compared), closeness(self.measured)]

    def tables(self) -> Sequence[Table]:
        """Return differences from the vendor's tool, layers, the choice of engines, effects of passes, and memory."""
        worst, layers = worst_layer(self.measured), [_Layer(self, *item) for item in enumerate(self.graph.nodes)]
        engines = [] if self.engines is None else [engine_table(self.engines)]
        return [
            differences_table(self.target.tool, self.departures),
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
        write_bytes(
            Path(path), self.target.tool_settings(self.settings, list(self.artifacts), Path(path).name).encode()
        )

    def write_template(self, path: str | Path) -> None:
        """Write the settings, ranges and figures of each layer, to edit and give back as `calibration.template`.

        Raises:
            OutputError: the file cannot be written.
        """
        write_template(path, self.target, self.settings, self.ranged, self.measured)


@dataclass(frozen=True)
class ConvertAllResult(Result):
    """The targets that take a model, and their scores.

    Attributes:
        model: how reports call it.
        folder: where each target's files are, in a folder of its name; None where none were written.
        targets: a row each.
        samples: how many layers were compared on.
        is_accuracy: whether the score is an accuracy; else it is the agreement with the model as it is.
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


@recorded
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

    Each layer's result is compared with floating point. The .tflite among the files is run by TFLite, too, and compared
    with the target's own arithmetic; where neither ai-edge-litert nor tensorflow is installed this is omitted. Neither
    is done on unnamed samples if it takes more than `UNREQUESTED_MACS` multiply-accumulates.

    Args:
        model: to convert.
        target: with its settings, or its name.
        folder: to write into, made where it is missing; None to write nothing.
        samples: to compare on; those of the calibration where none are named, else 32 random ones.
        options: the calibration.
        progress: shows how far it is.
        **changes: fields of the options.

    Raises:
        UsageError, OptionError, InputError, FormatError: options, samples or files that do not fit.
        UnsupportedError: operators that the target cannot take, all at once.
        OutputError: the files cannot be written.
    """
    options = changed(options, changes)
    options = replace(options, calibration=calibration_of(target, options.calibration))
    wanted = complete(target, options.calibration)
    original = read_model(model)
    chosen = samples_or_calibration(original, samples, options.calibration, DEFAULT_SAMPLES)
    found, settings = choose_target(wanted.name or "", wanted, recovers=True)
    ranged = calibrate(original, options.calibration, target=found.name, progress=progress)
    engines = None if options.engine is None else _choose_engines(options.engine, found, ranged.main, settings)
    settings = settings if engines is None else engines.settings
    if options.recover or fits_weights(settings):
        ranged, chosen = _recovered(original, ranged, (found, settings), wanted, samples, options)
    with trace_passes() if options.trace_passes else nullcontext(list[Change]()) as trace:
        execution = for_target(ranged.main, found, settings)
    selected = select_changes(trace, options.passes)
    with nullcontext() if folder is None else output_folder(folder) as scratch:
        artifacts = _artifacts(found, execution.graph, ranged)
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
    arena = describe_arena(found.arithmetic, graph, artifacts)
    return ConvertResult(
        name, original, found, settings, ranged, graph, where, artifacts, compared, measured, engines, selected, arena
    )


@recorded
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

    A target that refuses the model has a row that says why. Arguments and errors as for `convert`.
    """
    options = changed(options, changes)
    original = read_model(model)
    if options.engine is not None:
        raise UsageError("--engine auto is for one target; --target all takes each one's defaults")
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
    """Return the target's files; of a recovered model what was done to it, too."""
    about = ranged.metadata.get(METADATA)
    files = target.emit(graph, ranged)
    return files if about is None else {**files, "recovered.json": bytes(about)}


def _recovered(
    original: Model,
    ranged: Model,
    target: tuple[Target, Settings],
    wanted: TargetOptions,
    samples: SampleSource,
    options: ConvertOptions,
) -> tuple[Model, Samples]:
    """Return the recovered float model with its ranges, and the samples for it."""
    require_named(samples, options.calibration.has_samples)
    found = samples_or_calibration(original, samples, options.calibration, 0, all_given=True)
    given = GivenSamples(found.take(0, found.count))
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
        **picked(compared.output, "elements", "differing", "largest_lsb"),
        "tensors": {str(t): picked(s, "differing", "largest_lsb") for t, s in compared.tensors.items()},
    }


def _choose_engines(engine: str, target: Target, graph: Graph, settings: Settings) -> EngineChoices:
    if engine != "auto":
        raise UsageError(f"engine '{engine}': allowed is auto")
    if target.choose_engines is None:
        allowed = ", ".join(targets_with("choose_engines"))
        raise OptionError(f"target {target.name} has no engines to choose from; --engine auto is for {allowed}")
    return target.choose_engines(graph, settings)


def _engines(found: EngineChoices) -> Json:
    layers = [
        {**picked(layer, "index", "name", "engine", "tried", "setting"), "saved": figure(layer.saved)}
        for layer in found.layers
    ]
    return {"before": figure(found.before), "after": figure(found.after), "layers": layers}


def _write(folder: Path, artifacts: Artifacts) -> None:
    for name, data in artifacts.items():
        (folder / name).write_bytes(data)

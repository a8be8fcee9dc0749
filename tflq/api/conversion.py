"""Results of `tflq.convert` and `tflq.convert_all`: layers, files, and the targets side by side."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tflq.api.result import Result, select_attributes
from tflq.benchmarks.all_targets import TargetRow
from tflq.converters.engines import EngineChoices
from tflq.converters.settings import Settings
from tflq.converters.targets import Artifacts, Target
from tflq.converters.template import template_bytes
from tflq.diagnosis.similarity import Similarities, Similarity
from tflq.emit.written import EmittedDifference
from tflq.errors import UsageError
from tflq.files import write_bytes
from tflq.graph import ABSENT, Affine, Graph, Logarithmic, Model, Node
from tflq.graph.rewriting import Change
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
from tflq.units import number as number_text
from tflq.units import size


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
    arena: str = ""

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
        """Name of a layer, an operator of the file, or "" for the model -> difference of the vendor's tool."""
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
            UsageError: The target's tool has no such file.
            FormatError: Settings that the tool does not have.
        """
        if self.target.tool_settings is None:
            raise UsageError(f"target {self.target.name}: its tool has no file of settings that could be written")
        text = self.target.tool_settings(self.settings, list(self.artifacts), Path(path).name)
        write_bytes(Path(path), text.encode())

    def write_template(self, path: str | Path) -> None:
        """Write the settings, ranges and figures of each layer, as an editable file for `calibration.template`.

        Raises:
            OutputError: The file cannot be written.
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


def _engines(found: EngineChoices) -> Json:
    layers = [
        {**select_attributes(layer, "index", "name", "engine", "tried", "setting"), "saved": figure(layer.saved)}
        for layer in found.layers
    ]
    return {"before": figure(found.before), "after": figure(found.after), "layers": layers}

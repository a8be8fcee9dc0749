"""The tables and verdicts of `convert`: engine and similarity of each layer, and all targets side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tflq.benchmarks.all_targets import TargetRow
from tflq.converters.engines import EngineChoices
from tflq.diagnosis.similarity import Similarities, Similarity
from tflq.emit.written import EmittedDifference
from tflq.report.estimate import figure
from tflq.report.table import Column, Table, Verdict, identifier, keys, number, word_of
from tflq.units import count, size
from tflq.units import number as number_text


def worst_layer(measured: Similarities | str) -> Similarity | None:
    """Return the layer farthest from floating point; None if no layer was measured."""
    tensors = () if isinstance(measured, str) else measured.tensors
    return min((s for s in tensors if not math.isnan(s.cosine)), key=lambda s: s.cosine, default=None)


def conversion_verdict(target: str, operators: int, measured: Similarities | str) -> Verdict:
    """Return the number of operators and the layer farthest from floating point."""
    worst, unit = worst_layer(measured), f"operators converted for {target}"
    if worst is None or isinstance(measured, str):
        return Verdict("OK", operators, unit, advice="layers were not compared with floating point")
    farthest = f"the layer farthest from floating point is {worst.node or worst.name}: cosine {worst.cosine:.6f}"
    return Verdict("OK", operators, unit, "floating point", measured.samples, farthest)


def emitted_text(compared: EmittedDifference | str | None) -> str:
    """Return a sentence on the distance of the emitted .tflite from the target's arithmetic."""
    if compared is None:
        return "the target writes no .tflite"
    if isinstance(compared, str):
        return f"the .tflite was not compared: {compared}"
    output = compared.output
    return (
        f"the .tflite in TFLite against the target's arithmetic: {output.differing} of {output.elements} output "
        "elements "
        f"differ, by {number_text(output.largest_lsb)} LSB at most ({compared.samples} samples, {compared.identity})"
    )


def closeness(measured: Similarities | str) -> str:
    """Return a sentence on how the columns cosine and requantized were measured."""
    if isinstance(measured, str):
        return f"layers were not compared with floating point: {measured}"
    return (
        f"cosine: of each layer's float result and the target's, {measured.samples} samples; requantized: quantized "
        f"values of the float result that differ from the target's, and the largest difference"
    )


def differences_table(tool: str, differences: Mapping[str, str]) -> Table:
    """Return the list of all known differences between a vendor's tool and this conversion.

    Args:
        tool: Name of the vendor's tool.
        differences: Name of a layer, or "" for the whole model -> difference, with the page's number and the way out.
    """
    lines = [f"  {layer}: {text}" if layer else f"  {text}" for layer, text in differences.items()]
    rows = [{"layer": layer, "difference": text} for layer, text in differences.items()]
    return Table("differences", keys("layer", "difference"), rows, f"differs from {tool} here", lines=lines)


def engine_table(choices: EngineChoices) -> Table:
    """Return the layers that were tried on another engine, with the saved cycles."""
    title = "Engines by the estimate of cycles"
    return Table(
        "",
        _ENGINES,
        choices.layers,
        title,
        [_gain(choices)],
        marked=lambda row: row.is_moved,
        brief=lambda row: row.saved.is_offered,
    )


def _gain(choices: EngineChoices) -> str:
    unknown = sum(not layer.saved.is_offered for layer in choices.layers)
    rest = f"; {count(unknown, 'layer')} of {len(choices.layers)} stay: the other engine's cycles are not offered"
    tail = f"the network: {choices.after}{rest if unknown else ''}"
    moved = ", ".join(f"{layer.name} to the {layer.engine} (--layer {layer.setting})" for layer in choices.moved)
    if not moved:
        return f"no layer certainly takes fewer cycles on another engine; {tail}"
    return f"moved: {moved}; before: {choices.before}; {tail}"


_ENGINES = (
    number("", "#", "index"),
    identifier("", "layer", "name"),
    Column("", "engine", get="engine"),
    Column("", "tried", get="tried"),
    Column("", "saves", get=lambda row: str(row.saved)),
    Column("", "basis", get="saved.basis", rank=1),
)


def all_targets_verdict(rows: Sequence[TargetRow], score: str, samples: int) -> Verdict:
    """Return the number of targets that support the model, and the one with the lowest score."""
    taken = [row for row in rows if not row.refused]
    scored = [row for row in taken if row.score_percent is not None]
    word = word_of(len(taken) == len(rows))
    unit = f"of {count(len(rows), 'target')} support the model"
    worst = min(scored, key=lambda row: row.score_percent or 0.0, default=None)
    if worst is None:
        return Verdict(word, len(taken), unit, advice=taken[0].constraints[-1] if taken else "")
    layer = f"; its worst layer is {worst.worst_layer}, {worst.worst_sqnr_db:.1f} dB" if worst.worst_layer else ""
    advice = f"the lowest {score} is {worst.target}, {worst.score_percent:.1f} %{layer}"
    if len(scored) > 1 and len({row.score_percent for row in scored}) == 1:
        advice = f"{score} of each: {worst.score_percent:.1f} %"
    return Verdict(word, len(taken), unit, "the unchanged model", samples, advice)


def all_targets_table(rows: Sequence[TargetRow], *, is_accuracy: bool, samples: int) -> Table:
    """Return one row per target."""
    scores = [row.score_percent for row in rows if row.score_percent is not None]
    lowest = min(scores, default=math.nan) if len(set(scores)) > 1 else math.nan
    note = (
        f"agrees: share of {samples} samples with the same highest output as the unchanged model; --data TASK=DIR "
        "measures accuracy on labeled data instead"
    )
    score = number("score_percent", "accuracy" if is_accuracy else "agrees", form=_score, bar=True)
    columns = (identifier("target", "target"), score, *_TARGETS)
    return Table(
        "targets", columns, rows, "Targets", [] if is_accuracy else [note], lambda r: r.score_percent == lowest
    )


def targets_by_layer(rows: Sequence[TargetRow]) -> Table:
    """Return the signal-to-noise ratio of each tensor for all targets, side by side."""
    taken = [row for row in rows if row.layers]
    names = list(dict.fromkeys(name for row in taken for name in row.layers))
    layers = [{"layer": name, **{row.target: row.layers.get(name) for row in taken}} for name in names]
    columns = (identifier("", "tensor", "layer"), *(number("", r.target, r.target, ".1f") for r in taken))
    title = "SQNR of each tensor in dB, against the unchanged model"
    return Table("by_layer", columns, layers, title, terminal="never")


def _score(row: TargetRow) -> str:
    score = "none" if row.score_percent is None else f"{row.score_percent:.1f} %"
    return "refused" if row.refused else score


def _cycles(row: TargetRow) -> str:
    return "" if row.cycles is None else str(row.cycles)


def _worst(row: TargetRow) -> str:
    if row.refused:
        return ""
    return "not compared: other tensors" if row.worst_layer is None else row.worst_layer or "none differs"


_TARGETS = (
    Column("refused"),
    number("size_bytes", "files", form=lambda row: "" if row.refused else size(row.size_bytes)),
    Column("cycles", "cycles", get=lambda row: figure(row.cycles), text=_cycles, rank=1),
    Column("files", get=lambda row: {name: len(data) for name, data in row.artifacts.items()}),
    Column("worst_layer", "worst layer", "identifier", get=lambda row: row.worst_layer or None, text=_worst),
    number("worst_sqnr_db", "its SQNR", lambda r: r.worst_sqnr_db if r.worst_layer else None, ".1f", "dB"),
    Column("constraints", "constraints", text=lambda row: "; ".join(row.constraints)),
)

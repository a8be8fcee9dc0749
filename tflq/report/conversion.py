"""The page of a conversion: what runs where, how close each layer is to floating point, the files."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from tflq.benchmarks.all_targets import TargetRow
from tflq.converters.engines import EngineChoice, EngineChoices
from tflq.diagnosis.similarity import Similarities, Similarity
from tflq.emit.written import EmittedDifference
from tflq.graph import Graph
from tflq.report.memory import memory_section
from tflq.report.page import Chart, Page, Prose, Section, Table, count
from tflq.report.svg import TICKS, Mark, bars
from tflq.units import number, short, size


def conversion_page(
    model: str,
    target: str,
    graph: Graph,
    files: Mapping[str, int],
    compared: EmittedDifference | str | None,
    measured: Similarities | str,
    departures: Mapping[str, str] = MappingProxyType({}),
    engines: EngineChoices | None = None,
) -> Page:
    """Return the page.

    Args:
        model: path.
        target: name.
        graph: the target's, lowered.
        files: name -> bytes of what was written.
        compared: the emitted .tflite in TFLite against the target; None without one, or why it was not compared.
        measured: each layer against floating point, or why that was not measured.
        departures: name of a layer -> why the device's result differs from the right one.
        engines: what the choice of engines by the estimate came to; None where it was not asked for.
    """
    close = measured.tensors if isinstance(measured, Similarities) else ()
    facts = [("model", model), ("target", target), ("operators", str(len(graph.nodes)))]
    facts += [("file", f"{name}, {size(length)}") for name, length in files.items()]
    facts += [("remark", remark) for remark in (sentence(compared), closeness(measured))]
    facts += [("warning", f"{layer}: {reason}") for layer, reason in departures.items()]
    sections = [_along(close), _layers(graph, close), memory_section(graph)]
    if engines is not None:
        sections.insert(0, Section("Engines", [Prose([gained(engines)]), engine_table(engines.layers)]))
    return Page(f"{model} for {target}", _headline(target, close, measured), facts, [s for s in sections if s.blocks])


def sentence(compared: EmittedDifference | str | None) -> str:
    """Say in words how far the emitted .tflite is from the target."""
    if compared is None:
        return "the target writes no .tflite"
    if isinstance(compared, str):
        return f"the .tflite was not compared: {compared}"
    found = compared.output
    return (
        f"the .tflite in TFLite against the target's arithmetic: {found.differing} of {found.elements} output elements "
        f"differ, by {number(found.largest_lsb)} LSB at most ({compared.samples} samples, {compared.identity})"
    )


def closeness(measured: Similarities | str) -> str:
    """Say in words how the columns cosine and requantized were measured."""
    if isinstance(measured, str):
        return f"layers were not compared with floating point: {measured}"
    return (
        f"cosine: of each layer's float result and the target's, {measured.samples} samples; requantized: quantized "
        f"values of the float result that differ from the target's, and the largest difference"
    )


def gained(found: EngineChoices) -> str:
    """Say in words what the choice of engines by the estimate came to."""
    unknown = sum(not layer.saved.is_offered for layer in found.layers)
    rest = f"; {count(unknown, 'layer')} of {len(found.layers)} stay: the other engine's cycles are not offered"
    tail = f"the network: {found.after}{rest if unknown else ''}"
    moved = ", ".join(f"{layer.name} to the {layer.engine} (--layer {layer.setting})" for layer in found.moved)
    if not moved:
        return f"no layer takes fewer cycles elsewhere for certain; {tail}"
    return f"moved: {moved}; before: {found.before}; {tail}"


def engine_table(layers: Sequence[EngineChoice]) -> Table:
    """Return the layers that were tried on another engine, with the cycles that this saves."""
    rows = [(str(r.index), r.name, r.engine, r.tried, str(r.saved), r.saved.basis) for r in layers]
    moved = frozenset(n for n, r in enumerate(layers) if r.is_moved)
    return Table(("#", "layer", "engine", "tried", "it saves", "basis"), rows, ("#",), moved)


def all_targets_page(model: str, rows: Sequence[TargetRow], score: str) -> Page:
    """Return the page of `--target all`: one row a target.

    Args:
        model: path.
        rows: of the targets.
        score: what their percentage is.
    """
    taken = [row for row in rows if row.score_percent is not None]
    worst = min(taken, key=lambda row: row.score_percent or 0.0, default=None)
    tie = len({row.score_percent for row in taken}) == 1
    marks = [
        Mark(r.score_percent or 0.0, f"{r.target}: {r.score_percent:.1f} %", r is worst and not tie) for r in taken
    ]
    names = {n: short(row.target, TICKS // len(taken)) for n, row in enumerate(taken)}
    caption = f"{score}{'' if tie else '; the lowest one is marked'}"
    chart = Chart(bars(marks, "%", "", names), caption)
    columns = ("target", score, "worst layer", "its SQNR, dB", "constraints")
    table = Table(columns, [_target_row(r) for r in rows], columns[1:2])
    sections = [Section("Targets", [chart, table])]
    return Page(f"{model} for every target", _lowest(rows, taken, worst), [("model", model)], sections)


def _lowest(rows: Sequence[TargetRow], taken: Sequence[TargetRow], worst: TargetRow | None) -> str:
    if worst is None:
        return "Every target refuses the model."
    layer = f"; its worst layer is {worst.worst_layer}, {worst.worst_sqnr_db:.1f} dB" if worst.worst_layer else ""
    head = f"{len(taken)} of {count(len(rows), 'target')} take the model"
    if len(taken) > 1 and len({row.score_percent for row in taken}) == 1:
        return f"{head}, each with {worst.score_percent:.1f} %."
    return f"{head}; the lowest is {worst.target}, {worst.score_percent:.1f} %{layer}."


def _target_row(row: TargetRow) -> tuple[str, ...]:
    if row.score_percent is None:
        return (row.target, "refused", "", "", "; ".join(row.constraints))
    ratio = f"{row.worst_sqnr_db:.1f}" if row.worst_layer else ""
    return (row.target, f"{row.score_percent:.1f} %", row.worst_layer or "", ratio, "; ".join(row.constraints))


def _headline(target: str, close: tuple[Similarity, ...], measured: Similarities | str) -> str:
    worst = _worst(close)
    if worst is None or isinstance(measured, str):
        return f"Converted for {target}; layers were not compared with floating point."
    over = count(measured.samples, "sample")
    return (
        f"The layer farthest from floating point is {worst.node or worst.name}: cosine {worst.cosine:.6f} over {over}."
    )


def _worst(close: tuple[Similarity, ...]) -> Similarity | None:
    return min((s for s in close if not math.isnan(s.cosine)), key=lambda s: s.cosine, default=None)


def _along(close: tuple[Similarity, ...]) -> Section:
    worst = _worst(close)
    if worst is None:
        return Section("Distance from floating point", [])
    marks = [Mark(1 - s.cosine, f"{s.node or s.name}: cosine {s.cosine:.6f}", s is worst) for s in close]
    caption = "How far each layer's result points away from the float one, everything before it included."
    return Section(
        "Distance from floating point", [Chart(bars(marks, "1 - cosine", "layers in order of execution"), caption)]
    )


def _layers(graph: Graph, close: tuple[Similarity, ...]) -> Section:
    worst = _worst(close)
    by_tensor = {s.tensor: s for s in close}
    rows, marked = [], set()
    for index, node in enumerate(graph.nodes):
        found = next((by_tensor[t] for t in node.outputs if t in by_tensor), None)
        if found is not None and found is worst:
            marked.add(index)
        shapes = ", ".join(f"{graph.tensors[t].dtype.value}{list(graph.tensors[t].shape)}" for t in node.outputs)
        cosine = "" if found is None else f"{found.cosine:.6f}"
        requantized = (
            "" if found is None or math.isnan(found.differing) else f"{found.differing:.2%}, {found.largest:.4g}"
        )
        engine, reason = (node.attributes.text(key, "") for key in ("engine", "engine_reason"))
        rows.append((str(index), node.operator, node.name, engine, shapes, cosine, requantized, reason))
    columns = ("#", "operator", "layer", "engine", "output", "cosine", "quantized values that differ, most", "reason")
    return Section("Layers", [Table(columns, rows, ("#", "cosine", columns[6]), frozenset(marked))])

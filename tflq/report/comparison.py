"""The page of a comparison: the layer to look at, the error along the network, the worst tensors, memory."""

from __future__ import annotations

from collections.abc import Sequence

from tflq.diagnosis.compare import ComparedTensor, Comparison
from tflq.diagnosis.compare.tally import LAST_BIN
from tflq.graph import Graph
from tflq.report.memory import memory_section
from tflq.report.page import Chart, Page, Prose, Section, Table, count, decibels, share
from tflq.report.svg import Mark, bars, histogram
from tflq.units import short

_WORST = 4
"""Tensors with a histogram of their own."""


def comparison_page(
    found: Comparison, graph: Graph | None = None, cause: Section | None = None, recovered: Sequence[str] = ()
) -> Page:
    """Return the page.

    Args:
        found: what was compared.
        graph: of the first side, for its memory; None for a dump.
        cause: of the first wrong layer of a dump, where it was looked for.
        recovered: what recovered files say of their layers.
    """
    facts = [
        ("in question", found.first),
        ("reference", found.second),
        ("samples", str(found.samples)),
        ("mode", "isolated: each layer is fed with the reference's inputs" if found.isolated else "accumulated"),
        ("tensors compared", str(len(found.tensors))),
    ]
    sections = [
        *([cause] if cause is not None else []),
        _ranking(found),
        _along(found),
        *_histograms(found),
        _table(found),
        *([Section("Recovered layers, on samples kept aside", [Prose(recovered)])] if recovered else []),
    ]
    if graph is not None:
        sections.append(memory_section(graph))
    title = f"{found.first} against {found.second}"
    return Page(title, headline(found), facts, [s for s in sections if s.blocks])


def verdict(found: Comparison) -> str:
    """Say in one sentence what came out, for readers who see no page: both sides, the count, where to look first."""
    head = f"{found.first} against {found.second}, {found.samples} samples{', layers isolated' * found.isolated}: "
    within = f" by more than {found.tolerance:g} LSB" if found.tolerance else ""
    if found.is_equal:
        return f"{head}{len(found.tensors)} tensors, none differs{within}"
    first = found.diverging[0]
    differ = f"{len(found.diverging)} of {len(found.tensors)} tensors differ{within}"
    text = f"{head}{differ}, the first is '{short(first.name)}'"
    if not found.ranking:
        return f"{text}{'' if first.channel is None else f', most in channel {first.channel}'}"
    worst = found.ranking[0]
    channel = "" if worst.channel is None else f", channel {worst.channel}"
    return f"{text}; look at {worst.place}{channel} first{_cause(worst)}"


def headline(found: Comparison) -> str:
    """Say in one sentence which layer to look at first and why, or that nothing differs."""
    if found.is_equal:
        return f"None of {count(len(found.tensors), 'tensor')} differs over {count(found.samples, 'sample')}."
    if found.ranking:
        worst = found.ranking[0]
        channel = "" if worst.channel is None else f", channel {worst.channel}"
        return f"Look at {worst.place} ({worst.operator}{channel}) first{_cause(worst)}."
    first = found.diverging[0]
    return f"{len(found.diverging)} of {count(len(found.tensors), 'tensor')} differ, the first is '{first.name}'."


def _cause(tensor: ComparedTensor) -> str:
    return "" if tensor.cause is None else f": {tensor.cause.words}"


def _ranking(found: Comparison) -> Section:
    rows = []
    for number, tensor in enumerate(found.ranking, 1):
        cause = tensor.cause
        if cause is None:
            continue
        channel = "" if tensor.channel is None else str(tensor.channel)
        rows.append((str(number), tensor.place, tensor.operator, channel, cause.words, cause.advice))
    columns = ("#", "layer", "operator", "channel", "likely cause", "what to try")
    blocks = [Table(columns, rows, ("#", "channel"), frozenset({0}))] if rows else []
    return Section("Layers, the one to look at first in front", blocks)


def _along(found: Comparison) -> Section:
    worst = found.ranking[0].name if found.ranking else ""
    marks = [Mark(t.figures.sqnr_db, _figures(t), t.name == worst) for t in found.tensors]
    drawn = bars(marks, "SQNR, dB", "tensors in order of execution")
    note = "Signal to difference: the taller the better, a bar of full height is equal. The one to look at is marked."
    return Section("Error along the network", [Chart(drawn, note)])


def _figures(tensor: ComparedTensor) -> str:
    return f"{tensor.name}: {tensor.figures.sqnr_db:.1f} dB, largest {tensor.figures.largest:.4g}"


def _histograms(found: Comparison) -> list[Section]:
    """Draw how differences are distributed in the tensors that differ most in their own steps."""
    counted = [t for t in found.tensors if t.figures.differing and t.figures.lsb is not None]
    worst = sorted(counted, key=lambda t: -t.figures.rms_lsb)[:_WORST]
    charts = [
        Chart(
            histogram(t.figures.histogram, -LAST_BIN, "difference in LSB; the ends take what lies beyond"),
            f"{t.name}: {t.figures.differing} of {t.figures.elements} differ, by {t.figures.largest:.4g} LSB at most, "
            f"{t.figures.rms_lsb:.3g} rms; heights are fourth roots of the counts",
        )
        for t in worst
    ]
    return [Section("Differences of the worst tensors", charts)] if charts else []


def _table(found: Comparison) -> Section:
    figures = ("differing", "of", "largest LSB", "rms LSB", "SQNR dB", "cosine", "saturated", "unused")
    columns = ("tensor", "layer", *figures)
    worst = {t.name for t in found.ranking[:1]}
    rows = []
    for t in found.tensors:
        f = t.figures
        cells = (f"{f.largest:.4g}", f"{f.rms_lsb:.3g}", decibels(f.sqnr_db), f"{f.cosine:.6f}")
        rows.append((t.name, t.node, str(f.differing), str(f.elements), *cells, share(f.saturated), share(f.unused)))
    marked = frozenset(n for n, t in enumerate(found.tensors) if t.name in worst)
    blocks: list[Table | Prose] = [Table(columns, rows, figures, marked)]
    for who, others in (("in question", found.matching.first_only), ("the reference", found.matching.second_only)):
        if others:
            blocks.append(Prose([f"Only {who} has: {', '.join(others)}."]))
    return Section("Tensors", blocks)

"""The page of `estimate`: the cycles of each layer, what bounds them, time, energy and memory."""

from __future__ import annotations

from collections.abc import Iterator

from tflq.converters.estimate import AT_LEAST, Estimate, Figure, Grade
from tflq.report.page import Block, Chart, Page, Prose, Section, Table, count
from tflq.report.svg import Mark, bars

LAYER_COLUMNS = (
    "#",
    "layer",
    "operator",
    "engine",
    "cycles",
    "NE16 alone",
    "array busy",
    "bound by",
    "weights",
    "working set",
)
"""Columns of `layer_rows`; numbers stand in those that LAYER_NUMBERS names."""
LAYER_NUMBERS = ("#", "cycles", "NE16 alone", "array busy", "weights", "working set")


def estimate_page(model: str, target: str, found: Estimate) -> Page:
    """Return the page."""
    blocks: list[Block] = []
    if found.layers:
        shown = [(layer, layer.cycles if layer.cycles.is_offered else layer.engine_cycles) for layer in found.layers]
        marks = [Mark(_value(f), f"{layer.name}: {_cell(f)}", not layer.cycles.is_offered) for layer, f in shown]
        caption = "Cycles of each layer; marked: not offered, and at most NE16's own part of it is drawn."
        blocks = [Chart(bars(marks, "cycles", "layers in order of execution"), caption)]
        blocks.append(Table(LAYER_COLUMNS, layer_rows(found), LAYER_NUMBERS))
    totals = [(name, str(f), f.basis) for name, f in figures_of(found)]
    sections = [Section("Network", [Table(("figure", "value", "basis"), totals), Prose(list(found.remarks))])]
    if blocks:
        sections.append(Section("Layers", [*blocks, Prose(list(reasons(found)))]))
    return Page(f"{model} for {target}", f"{headline(found)}.", (("model", model), ("target", target)), sections)


def headline(found: Estimate) -> str:
    """Return the first sentence: the cycles of the network, or its lower bound and the layers without cycles."""
    if found.cycles.is_offered:
        return f"{found.cycles}: {found.cycles.basis}"
    least = found.totals.get(AT_LEAST)
    if least is None:
        return f"cycles of the network: not offered: {found.cycles.basis}"
    unknown = [layer.name for layer in found.layers if not layer.cycles.is_offered]
    layers = f"{len(unknown)} of {count(len(found.layers), 'layer')} without published cycles: {', '.join(unknown)}"
    return f"{least}; no total: {layers if unknown else found.cycles.basis}"


def figures_of(found: Estimate) -> Iterator[tuple[str, Figure]]:
    """Yield the figures of the network with their names; the lower bound first if there is no total."""
    if AT_LEAST in found.totals:
        yield AT_LEAST, found.totals[AT_LEAST]
    yield "cycles", found.cycles
    yield from ((name, figure) for name, figure in found.totals.items() if name != AT_LEAST)
    yield from found.memory.items()


def layer_rows(found: Estimate) -> list[tuple[str, ...]]:
    """Return the layers as text; a number that is more or less than exact says so."""
    return [
        (
            str(layer.index),
            layer.name,
            layer.operator,
            layer.engine,
            *map(_cell, (layer.cycles, layer.engine_cycles, layer.utilization)),
            layer.bound,
            *map(_cell, (layer.weights, layer.working_set)),
        )
        for layer in found.layers
    ]


def reasons(found: Estimate) -> Iterator[str]:
    """Yield what each kind of figure rests on, each once, with the layers that are not offered by name."""
    seen: dict[str, str] = {}
    for layer in found.layers:
        for figure in (layer.cycles, layer.engine_cycles):
            if figure is not None and figure.grade is Grade.NOT_OFFERED:
                seen.setdefault(f"{layer.name}: not offered: {figure.basis}", "")
            elif figure is not None:
                seen.setdefault(f"{figure.grade.value}: {figure.basis}", "")
        if layer.remark:
            seen.setdefault(f"{layer.name}: {layer.remark}", "")
    yield from seen


def _value(figure: Figure | None) -> float:
    return 0.0 if figure is None or figure.value is None else figure.value


def _cell(figure: Figure | None) -> str:
    return "" if figure is None else str(figure)

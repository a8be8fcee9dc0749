"""The tables and the verdict of `estimate`: cycles of each layer, time, energy and memory of the network."""

from __future__ import annotations

from collections.abc import Iterator

from tflq.converters.estimate import AT_LEAST, Estimate, Figure, Grade, LayerEstimate
from tflq.quoting import Json
from tflq.report.table import Column, Table, Verdict, identifier, number
from tflq.units import count


def figure(found: Figure | None) -> dict[str, Json] | None:
    """Return a figure as JSON; numbers to a tenth."""
    if found is None:
        return None
    value, low, high = (_tenths(number) for number in (found.value, found.low, found.high))
    grade, basis = found.grade.value, found.basis
    return {"value": value, "unit": found.unit, "grade": grade, "low": low, "high": high, "basis": basis}


def _tenths(value: float | None) -> float | None:
    return value if not isinstance(value, float) else int(value) if value.is_integer() else round(value, 1)


def estimate_verdict(found: Estimate) -> Verdict:
    """Return the cycles of the network, or the reason why there are none."""
    cycles, least = found.cycles, found.totals.get(AT_LEAST)
    if cycles.value is not None:
        return Verdict("", round(cycles.value), _without_value(cycles), cycles.basis)
    if least is None or least.value is None:
        return Verdict("", None, f"cycles of the network: not offered: {cycles.basis}")
    unknown = [layer.name for layer in found.layers if not layer.cycles.is_offered]
    layers = f"{len(unknown)} of {count(len(found.layers), 'layer')} without published cycles: {', '.join(unknown)}"
    return Verdict(
        "", round(least.value), "cycles or more (lower bound), no total", advice=layers if unknown else cycles.basis
    )


def _without_value(found: Figure) -> str:
    """Return unit, grade and error: the text of a figure after its number."""
    return f"{found.unit} {str(found).partition(f' {found.unit} ')[2]}"


def network_table(found: Estimate) -> Table:
    """Return the figures of the whole network."""
    first = [(AT_LEAST, found.totals[AT_LEAST])] if AT_LEAST in found.totals else []
    rest = [(name, figure) for name, figure in found.totals.items() if name != AT_LEAST]
    figures = [*first, ("cycles", found.cycles), *rest, *found.memory.items()]
    columns = (
        Column("", "figure", get=lambda row: row[0]),
        Column("", "value", get=lambda row: str(row[1])),
        Column("", "basis", get=lambda row: row[1].basis),
    )
    return Table("", columns, figures if found.layers else [], "Network", found.remarks)


def layers_table(found: Estimate) -> Table:
    """Return the figures of each layer; marked layers have no total."""
    return Table(
        "layers",
        _LAYERS,
        found.layers,
        "Layers",
        list(_reasons(found)),
        marked=lambda layer: not layer.cycles.is_offered,
    )


def _reasons(found: Estimate) -> Iterator[str]:
    """Yield the basis of each kind of figure once, and the reasons of layers that are not offered."""
    seen: dict[str, str] = {}
    for layer in found.layers:
        for part in (layer.cycles, layer.engine_cycles):
            if part is not None and part.grade is Grade.NOT_OFFERED:
                seen.setdefault(f"{layer.name}: not offered: {part.basis}", "")
            elif part is not None:
                seen.setdefault(f"{part.grade.value}: {part.basis}", "")
        if layer.remark:
            seen.setdefault(f"{layer.name}: {layer.remark}", "")
    yield from seen


def _figure(key: str, head: str, rank: int = 0, *, bar: bool = False) -> Column:
    def value(layer: LayerEstimate) -> Json:
        return figure(getattr(layer, key))

    def text(layer: LayerEstimate) -> str:
        part = getattr(layer, key)
        return "" if part is None else str(part)

    return Column(key, head, get=value, text=text, rank=rank, bar=bar)


_LAYERS = (
    number("index", "#"),
    identifier("name", "layer"),
    Column("operator", "operator", rank=1),
    Column("engine", "engine", rank=2),
    Column("macs", get=lambda layer: figure(layer.macs)),
    _figure("cycles", "cycles", bar=True),
    _figure("engine_cycles", "NE16 alone", 6, bar=True),
    _figure("utilization", "array busy", 5),
    Column("bound", "bound by", rank=3),
    _figure("weights", "weights", 7),
    _figure("working_set", "working set", 8),
    Column("remark"),
)

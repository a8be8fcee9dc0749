"""The pages of `sensitivity` and `search`: what each layer costs, and size against quality."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tflq.benchmarks.metrics import TOP_1, Metric
from tflq.benchmarks.significance import interval_text
from tflq.precision.search import Beside, Point, PrecisionSearch, is_required_accuracy_within
from tflq.precision.sensitivity import Sensitivity
from tflq.precision.trial import Requirement, Result
from tflq.report.page import Chart, Page, Section, Table, decibels
from tflq.report.svg import Dot, Mark, bars, scatter


def sensitivity_page(model: str, found: Sensitivity) -> Page:
    """Return the page of a sensitivity: a drawing for each width, and a table."""
    metric = found.metric
    how = "each layer alone is left at its widest" if found.is_spared else "each layer alone has the bits"
    facts = [("model", model), ("target", found.target), ("samples", str(found.samples)), ("measured", how)]
    charts = [_of_width(found, bits) for bits in reversed(found.widths)]
    columns = ["#", "layer", "operator", *(f"{bits} bits" for bits in found.widths)]
    rows = [
        (str(r.layer.index), r.layer.name, r.layer.operator, *(_cell(r.results.get(b), metric) for b in found.widths))
        for r in found.rows
    ]
    table = Table(columns, rows, ("#", *columns[3:]))
    quality = "Accuracy" if metric == TOP_1 else metric.name
    sections = [Section("Each layer alone", charts), Section(f"{quality} and SQNR of the outputs", [table])]
    return Page(f"Sensitivity of {model} for {found.target}", _sensitive(found), facts, sections)


def search_page(
    model: str,
    found: PrecisionSearch,
    verified: Result | None,
    beside: Sequence[Beside] = (),
    plain: PrecisionSearch | None = None,
) -> Page:
    """Return the page of a search: the Pareto front and the setting; of one with recovery the front without, too."""
    asked = found.requirement
    facts = [("model", model), ("target", found.target), ("samples", str(found.samples))]
    facts += [("asked", requirement_text(asked))]
    facts += [
        ("made small", found.objective.name),
        ("counted", found.plan.counted),
        ("settings tried", str(len(found.points))),
    ]
    if verified is not None:
        facts.append(("on samples kept apart", result_text(verified, asked.metric)))
    facts += [("noise", text) for text in noise_texts(found, beside)]
    sections = [_front(found), *_setting(found)]
    if plain is not None:
        facts.append(("recovered", "each setting, with these samples"))
        sections.append(replace(_front(plain), title="Without recovery"))
    return Page(f"Precision of {model} for {found.target}", _chosen(found), facts, sections)


def requirement_text(requirement: Requirement) -> str:
    """Say what is required."""
    metric, score, ratio = requirement.metric, requirement.score, requirement.sqnr_db
    bound = "at most" if metric.is_lower_better else "at least"
    texts = [f"{quality_name(metric)} of {bound} {f'{score:g} {metric.unit}'.rstrip()}"] if score is not None else []
    return " and ".join(texts + ([f"SQNR of at least {ratio:g} dB"] if ratio is not None else []))


def cost_text(found: PrecisionSearch, point: Point) -> str:
    """Say what a setting costs: what was made small with its grade and error, and the bytes."""
    size = f"{point.size_bytes} bytes of {found.plan.counted}"
    return size if found.objective.name == "bytes" else f"{point.cost}, {size}"


def quality_name(metric: Metric) -> str:
    """Return what a metric is called in texts."""
    return "accuracy" if metric == TOP_1 else metric.name


def quality_head(metric: Metric) -> str:
    """Return the head of a column or the name of an axis with a metric's figures."""
    return ", ".join(filter(None, (quality_name(metric), metric.unit)))


def value_text(result: Result, metric: Metric) -> str:
    """Write the metric's figure without its unit, for a table; empty where there is none."""
    if result.refused:
        return "refused"
    if result.value is None:
        return ""
    return f"{result.value:.1f}" if metric.k else f"{result.value:.4g}"


def result_text(result: Result, metric: Metric) -> str:
    """Say what a setting gave."""
    ratio = f"SQNR {result.sqnr_db:.1f} dB"
    name = "" if metric == TOP_1 else f"{metric.name} "
    if result.score is not None:
        return f"{name}{metric.text_of(result.score)}, {ratio}"
    if result.right is None:
        return ratio
    interval = f"95 % interval {interval_text(result.right, result.samples)}"
    return f"{name}{result.accuracy_percent:.1f} % ({result.right} of {result.samples}), {interval}, {ratio}"


def verdict_text(requirement: Requirement, result: Result) -> str:
    """Say whether a result on other samples keeps what is required, and whether these could say otherwise by luck."""
    kept = "kept" if requirement.holds(result) else "NOT kept"
    return f"{kept}, within the noise" if is_required_accuracy_within(requirement, result) else kept


def noise_texts(found: PrecisionSearch, beside: Sequence[Beside]) -> Iterator[str]:
    """Say where the samples do not tell the chosen setting's accuracy from the required one, or from another's."""
    chosen = found.chosen
    if chosen is not None and is_required_accuracy_within(found.requirement, chosen.result):
        yield (
            f"within the noise: {found.requirement.score:g} % lies in the 95 % interval of the chosen "
            "setting; other samples may give less"
        )
    for other in beside:
        accuracy = f"{other.point.result.right} right, {cost_text(found, other.point)}"
        yield f"chosen beside {other.what} ({accuracy}): {other.pair} (McNemar)"


def _sensitive(found: Sensitivity) -> str:
    rows = [r for r in found.rows if r.results]
    if not rows:
        return "No layer has a choice of bits."
    pick = max if found.is_spared else min
    row = pick(rows, key=lambda r: r.results[min(r.results)].sqnr_db)
    bits = min(row.results)
    what = "gains most from being spared" if found.is_spared else "suffers most"
    return f"{row.layer.name} ({row.layer.operator}) {what} at {bits} bits: {_cell(row.results[bits], found.metric)}."


def _of_width(found: Sensitivity, bits: int) -> Chart:
    rows = [r for r in found.rows if bits in r.results]
    worst = min(rows, key=lambda r: r.results[bits].sqnr_db, default=None)
    marks = [
        Mark(r.results[bits].sqnr_db, f"{r.layer.name}: {_cell(r.results[bits], found.metric)}", r is worst)
        for r in rows
    ]
    return Chart(
        bars(marks, "SQNR, dB", f"layers at {bits} bits, in order of execution"),
        f"{bits} bits: signal to noise of the outputs; the taller the better.",
    )


def _cell(result: Result | None, metric: Metric) -> str:
    if result is None:
        return ""
    if result.refused:
        return "refused"
    ratio = f"{decibels(result.sqnr_db)} dB"
    value = f"{value_text(result, metric)} {metric.unit}".strip()
    return f"{value}, {ratio}" if value else ratio


def _chosen(found: PrecisionSearch) -> str:
    point = found.chosen or found.best
    if point is None:
        return f"{found.target} refuses every setting."
    facts = f"{cost_text(found, point)}, {result_text(point.result, found.requirement.metric)}"
    if found.chosen is None:
        return f"No setting keeps what is asked; the best found has {facts}."
    even = found.cheapest_uniform
    compared = f", against {cost_text(found, even)} with {max(even.bits)} bits everywhere" if even else ""
    name = found.objective.name
    best = "smallest setting" if name == "bytes" else f"setting of least {name}"
    return f"The {best} that keeps what is asked has {facts}{compared}."


def _quality(found: PrecisionSearch, point: Point) -> float:
    value = point.result.value
    return point.result.sqnr_db if found.requirement.score is None or value is None else value


def _front(found: PrecisionSearch) -> Section:
    metric = found.requirement.metric
    dots = [
        Dot(
            found.objective.costs.of(p.bits),
            _quality(found, p),
            f"{cost_text(found, p)}: {_cell(p.result, metric)}; bits {' '.join(map(str, p.bits))}",
            p.is_pareto,
            p == found.chosen,
        )
        for p in found.points
        if not p.result.refused
    ]
    axis = quality_head(metric) if found.requirement.score is not None else "SQNR, dB"
    name, unit = found.objective.name, found.objective.unit
    counted = f"bytes of {found.plan.counted}" if name == "bytes" else f"{unit}, as `tflq estimate` says"
    drawn = scatter(dots, axis, counted)
    caption = "Every setting that was tried; the line joins those that no other one beats. The chosen one is marked."
    return Section(f"{name.capitalize()} against quality", [Chart(drawn, caption), _table(found)])


def _table(found: PrecisionSearch) -> Table:
    shown = [p for p in found.points if p.is_pareto or p.is_uniform or p == found.chosen]
    rows = [
        (*costs(found, p), _cell(p.result, found.requirement.metric), " ".join(map(str, p.bits)), _remark(found, p))
        for p in shown
    ]
    marked = frozenset(n for n, p in enumerate(shown) if p == found.chosen)
    counted = cost_columns(found)
    return Table((*counted, "quality", "bits of the layers", ""), rows, counted, marked)


def cost_columns(found: PrecisionSearch) -> tuple[str, ...]:
    """Return the heads of `costs`."""
    return ("bytes",) if found.objective.name == "bytes" else (found.objective.name, "bytes")


def costs(found: PrecisionSearch, point: Point) -> tuple[str, ...]:
    """Return what a setting costs: what was made small, where that is not bytes, and its bytes."""
    return (str(point.size_bytes),) if found.objective.name == "bytes" else (str(point.cost), str(point.size_bytes))


def _remark(found: PrecisionSearch, point: Point) -> str:
    words = (("Pareto", point.is_pareto), ("equal bits", point.is_uniform), ("chosen", point == found.chosen))
    return ", ".join(word for word, holds in words if holds)


def _setting(found: PrecisionSearch) -> list[Section]:
    point = found.chosen or found.best
    if point is None:
        return []
    table = layer_table(found, point)
    sizes = [Mark(int(bits), f"{name}: {bits} bits, {length} bytes") for _, name, _, bits, length in table.rows]
    chart = Chart(bars(sizes, "bits", "layers in order of execution"), "Bits of each layer.")
    return [Section("The setting", [chart, table])]


def layer_table(found: PrecisionSearch, point: Point) -> Table:
    """Return the layers with their bits and bytes in a setting."""
    rows = [
        (str(layer.index), layer.name, layer.operator, str(bits), str(layer.width(bits).size_bytes))
        for layer, bits in zip(found.plan.layers, point.bits, strict=True)
    ]
    return Table(("#", "layer", "operator", "bits", "bytes"), rows, ("#", "bits", "bytes"))

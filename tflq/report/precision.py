"""The tables and verdicts of `sensitivity` and `search`: the effect of each layer, and cost against quality."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tflq.benchmarks.metrics import TOP_1, Metric
from tflq.benchmarks.significance import interval_text
from tflq.precision.backward import BackwardSearch
from tflq.precision.search import Beside, Point, PrecisionSearch, is_required_accuracy_within
from tflq.precision.sensitivity import LayerSensitivity, Sensitivity
from tflq.precision.trial import Requirement, Result
from tflq.quoting import Json
from tflq.report.estimate import figure
from tflq.report.svg import Chart, Dot, scatter
from tflq.report.table import Column, Table, Verdict, identifier, number, word_of

_SHOWN_BELOW = 10.0
"""A terminal omits points that are further below the requirement, in percent or dB."""
_LAYER = (number("index", "#", "layer.index"), identifier("name", "layer", "layer.name"))
_OPERATOR = Column("operator", "operator", get="layer.operator", rank=1)


def sensitivity_verdict(found: Sensitivity) -> Verdict:
    """Return the layer with the largest effect."""
    rows = [row for row in found.rows if row.results]
    if not rows:
        return Verdict("", 0, "layers have a choice of bits")
    row = (max if found.is_spared else min)(rows, key=lambda r: r.results[min(r.results)].sqnr_db)
    bits = min(row.results)
    effect = "gains most from being spared" if found.is_spared else "suffers most"
    text = f"{row.layer.name} ({row.layer.operator}) {effect} at {bits} bits: {_cell(row.results[bits], found.metric)}"
    reference = "the model in floating point" if found.in_float else "the unchanged model"
    return Verdict("", len(rows), "layers measured", reference, found.samples, text)


def sensitivity_notes(found: Sensitivity) -> Iterator[str]:
    """Yield the method of the measurement, refusals, and the number of settings."""
    widest = "in floating point" if found.in_float else "at the widest"
    yield (
        f"each layer in turn {widest}" if found.is_spared else f"each layer in turn narrowed, all other layers {widest}"
    )
    for row in found.rows:
        for bits, tried in row.results.items():
            if tried.refused:
                yield f"{row.layer.name} at {bits} bits: {tried.refused}"
    yield settings_text(found)


def settings_text(found: Sensitivity | PrecisionSearch) -> str:
    """Return the number of settings."""
    return f"{found.evaluated + found.known} settings, {found.known} of them stored earlier"


def sensitivity_table(found: Sensitivity) -> Table:
    """Return the result of each layer at each width; the last row is the network without a changed layer."""
    columns: list[Column] = [*_LAYER, _OPERATOR]
    if any(base.value is not None for base in found.bases.values()):
        columns += [_width_column(found, bits, is_ratio=False) for bits in found.widths]
    columns += [_width_column(found, bits, is_ratio=True) for bits in found.widths]
    columns.append(Column("results", get=lambda r: {str(b): result_report(x) for b, x in r.results.items()}))
    lowest = min(found.widths, default=0)
    rated = [row for row in found.rows if lowest in row.results]
    worst = min(rated, key=lambda row: row.results[lowest].sqnr_db, default=None)
    base = " and ".join(f"{bits} bits: {_cell(result, found.metric)}" for bits, result in found.bases.items())
    note = f"without the {'spared' if found.is_spared else 'narrowed'} layer, {base}"
    title = "Quality with each layer in isolation"
    return Table("layers", columns, found.rows, title, [note], marked=lambda row: row is worst)


def _width_column(found: Sensitivity, bits: int, *, is_ratio: bool) -> Column:
    metric = found.metric

    def value(row: LayerSensitivity) -> float | None:
        result = row.results.get(bits)
        return None if result is None else result.sqnr_db if is_ratio else result.value

    def text(row: LayerSensitivity) -> str:
        result = row.results.get(bits)
        return "" if result is None else f"{result.sqnr_db:.1f}" if is_ratio else value_text(result, metric)

    head = f"SQNR at {bits}" if is_ratio else f"{quality_name(metric)} at {bits}"
    return number("", f"{head} bits", value, text, "dB" if is_ratio else metric.unit, bar=is_ratio)


def result_report(result: Result) -> dict[str, Json]:
    """Return a result as JSON; with the score of a metric other than top-K."""
    names = ("right", "samples", "accuracy_percent", "sqnr_db", *(("score",) if result.score is not None else ()))
    return {**{name: getattr(result, name) for name in names}, "refused": result.refused or None}


def search_verdict(found: PrecisionSearch, verified: Result | None) -> Verdict:
    """Return the figure of the setting, on the samples of the verification if there are any."""
    required, point = found.requirement, found.chosen or found.best
    if point is None:
        return Verdict("FAIL", None, f"every setting is refused by {found.target}", requirement_text(required))
    judged = verified or point.result
    is_kept = found.chosen is not None and required.holds(judged)
    value, unit = judged.value, f"{required.metric.unit} {quality_name(required.metric)}".strip()
    if required.score is None or value is None:
        value, unit = judged.sqnr_db, "dB SQNR"
    cost = f"{cost_text(found, point)}{'' if found.chosen else ', the best found'}"
    return Verdict(word_of(is_kept), value, unit, requirement_text(required), judged.samples, cost)


def requirement_text(requirement: Requirement) -> str:
    """Describe the requirement."""
    metric, score, ratio = requirement.metric, requirement.score, requirement.sqnr_db
    bound = "at most" if metric.is_lower_better else "at least"
    texts = [f"{quality_name(metric)} of {bound} {f'{score:g} {metric.unit}'.rstrip()}"] if score is not None else []
    return " and ".join(texts + ([f"SQNR of at least {ratio:g} dB"] if ratio is not None else []))


def cost_text(found: PrecisionSearch, point: Point) -> str:
    """Describe the cost of a setting: the objective with its grade and error, and the bytes."""
    size = f"{point.size_bytes} bytes of {found.plan.counted}"
    return size if found.objective.name == "bytes" else f"{point.cost}, {size}"


def quality_name(metric: Metric) -> str:
    """Return the name of a metric in texts."""
    return "accuracy" if metric == TOP_1 else metric.name


def value_text(result: Result, metric: Metric) -> str:
    """Format the metric's figure without its unit, for a table; empty without a figure."""
    if result.refused:
        return "refused"
    if result.value is None:
        return ""
    return f"{result.value:.1f}" if metric.k else f"{result.value:.4g}"


def result_text(result: Result, metric: Metric) -> str:
    """Describe the result of a setting."""
    return ", ".join(filter(None, (describe_score(result, metric), f"SQNR {result.sqnr_db:.1f} dB")))


def describe_score(result: Result, metric: Metric) -> str:
    """Return the metric's figure and its interval; empty without labels."""
    name = "" if metric == TOP_1 else f"{metric.name} "
    if result.score is not None:
        return f"{name}{metric.text_of(result.score)}"
    if result.right is None:
        return ""
    interval = f"95 % interval {interval_text(result.right, result.samples)}"
    return f"{name}{result.accuracy_percent:.1f} % ({result.right} of {result.samples}), {interval}"


def describe_outcome(found: PrecisionSearch, verified: Result | None, floating: Result | None) -> list[str]:
    """Return the outcome of a search in sentences: the setting, its verification, and the float model's score.

    Args:
        found: Result of the search.
        verified: Result of the chosen setting on other samples; None if it was not run on other samples.
        floating: Result of the float model on the samples of `verified`, or else of the search; None without labels.
    """
    required = found.requirement
    texts = [_describe_setting(found)]
    if verified is not None:
        texts.append(f"on the samples of --verify: {describe_verification(found, verified)}")
        if not required.holds(verified):
            texts.reverse()
    if floating is not None:
        score = f"the float model on the same samples: {describe_score(floating, required.metric)}"
        bound = replace(required, sqnr_db=None)
        missed = "" if bound.holds(floating) else f", which does not keep an {requirement_text(bound)} either"
        texts.append(f"{score}{missed}")
    return texts


def _describe_setting(found: PrecisionSearch) -> str:
    point = found.chosen or found.best
    if point is None:
        return f"every setting is refused by {found.target}"
    facts = f"{cost_text(found, point)}, {result_text(point.result, found.requirement.metric)}"
    if found.chosen is None:
        return f"no setting keeps an {requirement_text(found.requirement)}; the best found: {facts}"
    even = found.cheapest_uniform
    compared = f"; the cheapest with equal bits: {max(even.bits)} bits, {cost_text(found, even)}" if even else ""
    return f"chosen: {facts}{compared}"


def describe_verification(found: PrecisionSearch, verified: Result | None) -> str:
    """Return the verification of the chosen setting for its file."""
    if verified is None:
        return "no: only the samples of the search confirm this setting"
    return f"{result_text(verified, found.requirement.metric)}: {judge_verification(found.requirement, verified)}"


def judge_verification(requirement: Requirement, result: Result) -> str:
    """Describe whether other samples confirm the requirement, and whether that could be chance."""
    kept = "kept" if requirement.holds(result) else "NOT kept"
    return f"{kept}, within the noise" if is_required_accuracy_within(requirement, result) else kept


def noise_texts(found: PrecisionSearch, beside: Sequence[Beside]) -> Iterator[str]:
    """Yield remarks on accuracies that the samples do not distinguish from the chosen setting's."""
    chosen = found.chosen
    if chosen is not None and is_required_accuracy_within(found.requirement, chosen.result):
        yield (
            f"within the noise: {found.requirement.score:g} % is in the 95 % interval of the chosen "
            "setting; other samples may have a lower accuracy"
        )
    for other in beside:
        accuracy = f"{other.point.result.right} right, {cost_text(found, other.point)}"
        yield f"chosen beside {other.what} ({accuracy}): {other.pair} (McNemar)"


def _cell(result: Result | None, metric: Metric) -> str:
    if result is None:
        return ""
    if result.refused:
        return "refused"
    ratio = f"{result.sqnr_db:.1f} dB"
    value = f"{value_text(result, metric)} {metric.unit}".strip()
    return f"{value}, {ratio}" if value else ratio


def setting_table(found: PrecisionSearch) -> Table:
    """Return the layers with their bits and bytes in the setting."""
    point = found.chosen or found.best
    bits = [None] * len(found.plan.layers) if point is None else point.bits
    rows = [{"layer": layer, "bits": b} for layer, b in zip(found.plan.layers, bits, strict=True)]
    size = number("size_bytes", "bytes", lambda r: r["bits"] and r["layer"].width(r["bits"]).size_bytes)
    return Table("layers", (*_LAYER, _OPERATOR, number("bits", "bits", bar=True), size), rows, "The setting")


def points_table(found: PrecisionSearch, name: str = "points", title: str = "") -> Table:
    """Return all settings that were tried, and their drawing; a terminal lists points near the requirement."""
    metric, is_bytes = found.requirement.metric, found.objective.name == "bytes"
    score = number("", quality_name(metric), "result.value", lambda p: value_text(p.result, metric), metric.unit)
    cost = Column("cost", "" if is_bytes else found.objective.name, "number", get=_cost, text=lambda p: str(p.cost))
    columns = (
        number("size_bytes", "bytes"),
        cost,
        Column("bits"),
        score,
        *(Column(name, get=f"result.{name}") for name in ("right", "samples", "accuracy_percent", "interval_percent")),
        number("sqnr_db", "SQNR", "result.sqnr_db", ".1f", "dB"),
        Column("", "bits of the layers", get=lambda p: " ".join(map(str, p.bits))),
        Column("score", get="result.score"),
        Column("pareto", get="is_pareto"),
        Column("equal_bits", get="is_uniform"),
        Column("chosen", get=lambda p: p == found.chosen),
        Column("", "remark", get=lambda p: _remark(found, p)),
    )
    title = title or f"{found.objective.name.capitalize()} against quality"
    return Table(
        name,
        columns,
        found.points,
        title,
        marked=lambda p: p == found.chosen,
        brief=lambda p: _is_near(found, p),
        charts=lambda: [_front(found)],
    )


def _cost(point: Point) -> Json:
    return figure(point.cost)


def _front(found: PrecisionSearch) -> Chart:
    metric, is_scored = found.requirement.metric, found.requirement.score is not None
    dots = [
        Dot(
            found.objective.costs.of(p.bits),
            p.result.value if is_scored and p.result.value is not None else p.result.sqnr_db,
            f"{cost_text(found, p)}: {_cell(p.result, metric)}; bits {' '.join(map(str, p.bits))}",
            p.is_pareto,
            p == found.chosen,
        )
        for p in found.points
        if not p.result.refused
    ]
    axis = ", ".join(filter(None, (quality_name(metric), metric.unit))) if is_scored else "SQNR, dB"
    name, unit = found.objective.name, found.objective.unit
    counted = f"bytes of {found.plan.counted}" if name == "bytes" else f"{unit}, as estimated by `tflq estimate`"
    caption = (
        "All tried settings; the line connects the settings that no other setting beats. The chosen setting is marked."
    )
    return Chart(scatter(dots, axis, counted), caption)


def _is_near(found: PrecisionSearch, point: Point) -> bool:
    if point in (found.chosen, found.best):
        return True
    accuracy, asked = point.result.accuracy_percent, found.requirement
    near = asked.score is None or accuracy is None or accuracy >= asked.score - _SHOWN_BELOW
    loud = asked.sqnr_db is not None and point.result.sqnr_db < asked.sqnr_db - _SHOWN_BELOW
    return (point.is_pareto or point.is_uniform) and near and not loud


def _remark(found: PrecisionSearch, point: Point) -> str:
    texts = ["Pareto"] if point.is_pareto else []
    texts += ["equal bits"] if point.is_uniform else []
    if point == found.chosen:
        texts.append("chosen")
    elif found.requirement.holds(point.result):
        least = found.least_sqnr_db
        texts.append("kept, too noisy" if least is not None and point.result.sqnr_db < least else "kept")
    return ", ".join(texts)


def backward_verdict(found: BackwardSearch, samples: int) -> Verdict:
    """Return the drop of the score and the first layer that needs more bits."""
    trial = found.chosen or found.best
    reference = f"at most {found.largest_drop:g} below {found.reference:.6f}"
    layers = f"layers from {trial.first} on promoted to {trial.stage}"
    advice = layers if found.rules or not found.chosen else "no layer needs more bits"
    drop = round(found.drop(trial), 6)
    return Verdict(word_of(found.chosen), drop, f"drop of {found.score_name}", reference, samples, advice)


def backward_table(found: BackwardSearch) -> Table:
    """Return every trial."""
    columns = (
        number("first", "from layer"),
        Column("stage", "promoted to"),
        number("score", found.score_name, form=".6f"),
        number("", "drop", found.drop, ".6f"),
    )
    return Table("tried", columns, found.tried, "Trials", marked=lambda tried: tried is found.chosen)

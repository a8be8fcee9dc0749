"""What `sensitivity` and `search` print: figures, tables, JSON, points for a plot."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from tflq.cli import output

if TYPE_CHECKING:
    from tflq.cli.precision_options import Span
    from tflq.converters.precision import LayerWidths
    from tflq.precision.search import Point, PrecisionSearch
    from tflq.precision.trial import Requirement, Result

_SHOWN_BELOW = 10.0
"""Points so far below what is required, in percent or dB, stay out of the printed table."""


def accuracy_text(result: Result) -> str:
    """Write an accuracy in percent."""
    found = result.accuracy_percent
    return "refused" if result.refused else "" if found is None else f"{found:.1f}"


def decibels(value: float) -> str:
    """Write a ratio."""
    return f"{value:.1f}"


def result_json(result: Result) -> output.Json:
    """Return a result as JSON."""
    return {
        "right": result.right,
        "samples": result.samples,
        "accuracy_percent": result.accuracy_percent,
        "sqnr_db": result.sqnr_db,
        "refused": result.refused or None,
    }


def layer_json(layer: LayerWidths) -> dict[str, output.Json]:
    """Return a layer as JSON, without its widths."""
    return {"index": layer.index, "name": layer.name, "operator": layer.operator}


def requirement_text(requirement: Requirement) -> str:
    """Say what is required."""
    accuracy, ratio = requirement.accuracy_percent, requirement.sqnr_db
    texts = [f"accuracy of at least {accuracy:g} %"] if accuracy is not None else []
    return " and ".join(texts + ([f"SQNR of at least {ratio:g} dB"] if ratio is not None else []))


def result_text(result: Result) -> str:
    """Say what a setting gave."""
    ratio = f"SQNR {decibels(result.sqnr_db)} dB"
    if result.right is None:
        return ratio
    return f"{accuracy_text(result)} % ({result.right} of {result.samples}), {ratio}"


def print_search(model: str, found: PrecisionSearch, span: Span | None, verified: Result | None) -> None:
    """Print the table, the layers of the setting and what it gives."""
    which = f"samples {span}" if span else f"{found.samples} samples"
    output.line(f"{model} for {found.target}: {len(found.plan.layers)} layers with a choice, {which}")
    output.line(f"required: {requirement_text(found.requirement)}")
    _print_points(found)
    point = found.chosen or found.best
    if point is None:
        output.line("the target refuses every setting")
    else:
        _print_layers(found, point)
        output.line(_sentence(found, point))
    if verified is not None:
        kept = "kept" if found.requirement.holds(verified) else "NOT kept"
        output.line(f"on the samples of --verify: {result_text(verified)}: {kept}")
    output.line(f"{found.evaluated + found.known} settings, {found.known} of them known from before")


def _sentence(found: PrecisionSearch, point: Point) -> str:
    facts = f"{point.size_bytes} bytes of {found.plan.counted}, {result_text(point.result)}"
    if found.chosen is None:
        return f"no setting keeps an {requirement_text(found.requirement)}; the best found: {facts}"
    even = [p for p in found.uniform if found.requirement.holds(p.result)]
    compared = f"; the smallest with equal bits: {max(even[0].bits)} bits, {even[0].size_bytes} bytes" if even else ""
    return f"chosen: {facts}{compared}"


def _print_points(found: PrecisionSearch) -> None:
    shown = [p for p in found.points if _is_shown(found, p)]
    output.line()
    columns = ("bytes", "accuracy, %", "SQNR, dB", "bits of the layers", "")
    rows = [
        (
            str(p.size_bytes),
            accuracy_text(p.result),
            decibels(p.result.sqnr_db),
            " ".join(map(str, p.bits)),
            _remark(found, p),
        )
        for p in shown
    ]
    title = f"size against quality: the Pareto front, equal bits, and the setting ({len(found.points)} points in all)"
    output.table(columns, rows, right=columns[:3], title=title)
    output.line()


def _is_shown(found: PrecisionSearch, point: Point) -> bool:
    if point in (found.chosen, found.best):
        return True
    accuracy, asked = point.result.accuracy_percent, found.requirement
    near = asked.accuracy_percent is None or accuracy is None or accuracy >= asked.accuracy_percent - _SHOWN_BELOW
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


def _print_layers(found: PrecisionSearch, point: Point) -> None:
    rows = []
    for layer, bits in zip(found.plan.layers, point.bits, strict=True):
        size = layer.width(bits).size_bytes
        rows.append((str(layer.index), layer.name, layer.operator, str(bits), str(size)))
    output.table(("#", "layer", "operator", "bits", "bytes"), rows, right=("#", "bits", "bytes"))
    output.line()


def search_json(model: str, found: PrecisionSearch, verified: Result | None) -> dict[str, output.Json]:
    """Return the report; its points are those of a plot of size against quality."""
    best = found.best
    return {
        "model": model,
        "target": found.target,
        "samples": found.samples,
        "required": {"accuracy_percent": found.requirement.accuracy_percent, "sqnr_db": found.requirement.sqnr_db},
        "slack_db": found.slack_db,
        "least_sqnr_db": found.least_sqnr_db,
        "counted": found.plan.counted,
        "fixed_bytes": found.plan.fixed_bytes,
        "layers": [layer_json(layer) for layer in found.plan.layers],
        "chosen": None if found.chosen is None else _point_json(found.chosen),
        "best": None if best is None else _point_json(best),
        "verified": None if verified is None else result_json(verified),
        "points": [_point_json(point) for point in found.points],
        "evaluated": found.evaluated,
        "known": found.known,
    }


def _point_json(point: Point) -> dict[str, output.Json]:
    return {
        "size_bytes": point.size_bytes,
        "bits": list(point.bits),
        "right": point.result.right,
        "accuracy_percent": point.result.accuracy_percent,
        "sqnr_db": point.result.sqnr_db,
        "pareto": point.is_pareto,
        "equal_bits": point.is_uniform,
    }


def points_csv(found: PrecisionSearch) -> bytes:
    """Return all points as a table for plotting programs: a line of names, then one for each point."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("size_bytes", "right", "samples", "sqnr_db", "pareto", "equal_bits", "chosen", "bits"))
    for p in found.points:
        facts = (p.size_bytes, p.result.right, p.result.samples, p.result.sqnr_db)
        flags = (int(p.is_pareto), int(p.is_uniform), int(p == found.chosen))
        writer.writerow((*facts, *flags, " ".join(map(str, p.bits))))
    return text.getvalue().encode()

"""The page of `bench`: the model as it is and for each target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from tflq.benchmarks.accuracy import Accuracy
from tflq.benchmarks.anomaly import Detection
from tflq.benchmarks.metrics import Metric
from tflq.benchmarks.performance import Performance
from tflq.benchmarks.rows import Row
from tflq.benchmarks.significance import Paired, interval_text
from tflq.benchmarks.tasks import Quality
from tflq.benchmarks.truth import Judged
from tflq.benchmarks.wake_words import WakeWords
from tflq.report.page import Block, Chart, Page, Section, Table
from tflq.report.svg import TICKS, Mark, bars
from tflq.units import short

_RATE = "inferences a second"


def bench_page(
    title: str,
    facts: Sequence[tuple[str, str]],
    rows: Sequence[Row],
    quality: Quality | None,
    pairs: Mapping[str, Paired] = MappingProxyType({}),
) -> Page:
    """Return the page.

    Args:
        title: of the task, and the model.
        facts: what was run.
        rows: of the model as it is, first, and of each target.
        quality: what the benchmark asks; None where it asks nothing.
        pairs: name of a row -> its right answers beside those of the first row.
    """
    measured = [row for row in rows if row.found is not None]
    blocks: list[Block] = []
    if measured:
        kind = _kind(measured[0])
        marks = [Mark(_value(row), f"{row.name}: {_text(row)}", _misses(row, quality)) for row in measured]
        caption = f"{kind}, as it is and for each target" + ("; marked: below what MLPerf Tiny asks" if quality else "")
        is_score = quality is not None and kind != _RATE and quality.metric != "wake words"
        limit = (quality.at_least, f"MLPerf Tiny: {quality}") if quality and is_score else None
        names = {n: short(row.name, TICKS // len(measured)) for n, row in enumerate(measured)}
        blocks.append(Chart(bars(marks, kind, "", names, limit), caption))
    blocks.append(_results(rows, quality, pairs))
    classes = class_table(measured)
    sections = [Section("Results", blocks), *([Section("Classes", [classes])] if classes else [])]
    return Page(title, _headline(measured, quality), facts, sections)


def _results(rows: Sequence[Row], quality: Quality | None, pairs: Mapping[str, Paired]) -> Table:
    columns, table = (
        ["as", "result"],
        [[row.name, f"refused: {row.refusal}" if row.found is None else _text(row)] for row in rows],
    )
    if any(isinstance(row.found, Accuracy) for row in rows):
        columns.append("95 % interval (Wilson)")
        for row, cells in zip(rows, table, strict=True):
            found = row.found
            cells.append(interval_text(found.right, found.total) if isinstance(found, Accuracy) else "")
    if pairs:
        columns.append(f"beside {rows[0].name} (McNemar)")
        for row, cells in zip(rows, table, strict=True):
            cells.append(str(pairs.get(row.name, "")))
    missed = frozenset(n for n, row in enumerate(rows) if _misses(row, quality))
    return Table(tuple(columns), [tuple(cells) for cells in table], (), missed)


def _kind(row: Row) -> str:
    """Return what a row's value is, with its unit."""
    if isinstance(row.found, Performance):
        return _RATE
    if isinstance(row.found, WakeWords):
        return "wake words found, %"
    if isinstance(row.found, Judged):
        return ", ".join(filter(None, (row.found.metric.name, row.found.metric.unit)))
    return "accuracy, %" if isinstance(row.found, Accuracy) else "AUC"


def _headline(rows: Sequence[Row], quality: Quality | None) -> str:
    if not rows:
        return "No target takes the model."
    if len(rows) == 1:
        return f"{rows[0].name.capitalize()}: {_text(rows[0])}."
    is_lower_better = isinstance(rows[0].found, Judged) and rows[0].found.metric.is_lower_better
    worst = (max if is_lower_better else min)(rows[1:], key=_value)
    tie = len(rows) > 2 and len({_value(row) for row in rows[1:]}) == 1
    which = "every target" if tie else f"the {'highest' if is_lower_better else 'lowest'} target is {worst.name}"
    missed = [row.name for row in rows if _misses(row, quality)]
    asked = f"; {', '.join(missed)} below MLPerf Tiny's {quality}" if quality and missed else ""
    return f"{rows[0].name.capitalize()}: {_text(rows[0])}; {which}: {_text(worst)}{asked}."


def _misses(row: Row, quality: Quality | None) -> bool:
    return (
        quality is not None and isinstance(row.found, (Accuracy, Detection, WakeWords)) and not row.found.meets(quality)
    )


def _value(row: Row) -> float:
    found = row.found
    if isinstance(found, (Accuracy, WakeWords)):
        return found.percent
    if isinstance(found, Judged):
        return found.value
    if isinstance(found, Detection):
        return found.auc if found.auc is not None else float("nan")
    return found.throughput if found is not None else float("nan")


def _text(row: Row) -> str:
    found = row.found
    if isinstance(found, Accuracy):
        return f"{found.percent:.1f} % ({found.right} of {found.total})"
    if isinstance(found, WakeWords):
        return wake_words_text(found)
    if isinstance(found, Judged):
        return f"{found.metric.name} {found.metric.text_of(found.value)} ({found.samples} samples)"
    if isinstance(found, Detection):
        return "no AUC" if found.auc is None else f"AUC {found.auc:.3f}"
    return f"{found.throughput:.1f} inferences a second" if found is not None else ""


def wake_words_text(found: WakeWords) -> str:
    """Say what was detected in a stream."""
    return (
        f"{found.true_positives} of {found.words} wake words, {found.false_positives} false positives in "
        f"{found.seconds:g} s: {found.false_accepts_per_hour:.1f} false accepts and {found.false_rejects_per_hour:.1f} "
        "false rejects an hour"
    )


def with_figures_of(
    page: Page,
    metrics: Sequence[Metric],
    figures: Mapping[str, Mapping[str, float]],
    confusions: Mapping[str, NDArray[np.int64]],
) -> Page:
    """Return a page with the metrics that were asked for, and with which classes were taken for which."""
    names = tuple(metric.name for metric in metrics)
    rows = [(name, *(m.text_of(values[m.name]) for m in metrics)) for name, values in figures.items()]
    sections = [Section("Metrics", [Table(("as", *names), rows, names)])] if rows else []
    taken = [Section("Classes taken for each other", confusion_tables(confusions))] if confusions else []
    return replace(page, sections=[*page.sections, *sections, *taken])


def confusion_tables(found: Mapping[str, NDArray[np.int64]]) -> list[Table]:
    """Return a table for each row: how often each class, downwards, was taken for each, to the right."""
    tables = []
    for name, matrix in found.items():
        columns = (f"{name}: class", *map(str, range(len(matrix))))
        tables.append(Table(columns, [(str(n), *map(str, row)) for n, row in enumerate(matrix.tolist())], columns))
    return tables


def class_table(rows: Sequence[Row]) -> Table | None:
    """Return the accuracy of each class; None where there is none."""
    scores = [row.found for row in rows if isinstance(row.found, Accuracy)]
    if not scores:
        return None
    columns = ("class", "of", *(score.name for score in scores))
    table = []
    for number, of in enumerate(scores[0].classes):
        shares = [f"{100 * s.classes[number].right / of.total:.1f} %" if of.total else "" for s in scores]
        table.append((str(number), str(of.total), *shares))
    return Table(columns, table, columns)

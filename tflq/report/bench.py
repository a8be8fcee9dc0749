"""The tables and the verdict of `bench`: the unchanged model, each target, or a board."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from tflq.benchmarks.accuracy import Accuracy
from tflq.benchmarks.anomaly import Detection
from tflq.benchmarks.metrics import Metric
from tflq.benchmarks.performance import Performance
from tflq.benchmarks.rows import Row
from tflq.benchmarks.scoring import Score
from tflq.benchmarks.significance import interval_text
from tflq.benchmarks.tasks import Quality
from tflq.benchmarks.truth import Judged
from tflq.benchmarks.wake_words import WakeWords
from tflq.report.table import Column, Table, identifier, number


def row_columns(rows: Sequence[Row], quality: Quality | None) -> tuple[Column, ...]:
    """Return the columns of the score that was measured, with the reason of a refusal and the benchmark's goal."""
    kinds = [type(row.result) for row in rows if row.result is not None]
    columns = (identifier("name", "as"), *(_SCORES[kinds[0]] if kinds else ()))
    refused = Column("refused", "refused", get=lambda row: row.refusal or None)
    is_judged = quality is None or Judged in kinds or Performance in kinds
    goal = () if is_judged else (Column("", f"MLPerf Tiny's {quality}", get=lambda row: _goal(row, quality)),)
    return (*columns, *goal, refused)


def metric_columns(metrics: Sequence[Metric], figures: Mapping[str, Mapping[str, float]]) -> list[Column]:
    """Return a column for each metric that was requested; JSON has them under "metrics"."""
    if not metrics:
        return []
    return [
        Column("metrics", get=lambda row: figures.get(row.name)),
        *(_metric_column(metric, figures) for metric in metrics),
    ]


def _metric_column(metric: Metric, figures: Mapping[str, Mapping[str, float]]) -> Column:
    def text(row: Row) -> str:
        return metric.text_of(figures[row.name][metric.name]) if row.name in figures else ""

    return number("", metric.name, lambda row: figures.get(row.name, {}).get(metric.name), text)


def misses(row: Row, quality: Quality | None) -> bool:
    """Whether a row is below the benchmark's goal."""
    score = row.result
    return quality is not None and isinstance(score, (Accuracy, Detection, WakeWords)) and not score.meets(quality)


def _goal(row: Row, quality: Quality | None) -> str | None:
    return None if row.result is None else "missed" if misses(row, quality) else "met"


def score_of(row: Row) -> tuple[float, str]:
    """Return the figure of a row and its unit."""
    score = row.result
    if isinstance(score, Accuracy):
        return score.percent, f"% accuracy ({score.right} of {score.total})"
    if isinstance(score, WakeWords):
        return score.percent, f"% of {wake_words_text(score)}"
    if isinstance(score, Judged):
        return score.value, f"{score.metric.unit} {score.metric.name}".strip()
    if isinstance(score, Detection):
        return (float("nan"), "AUC") if score.auc is None else (round(score.auc, 3), "AUC")
    return (round(score.throughput, 1), "inferences/s") if score is not None else (float("nan"), "")


def lowest_text(rows: Sequence[Row], quality: Quality | None) -> str:
    """Return a sentence on the target with the lowest score, and on rows below the benchmark's goal."""
    targets = [row for row in rows[1:] if row.result is not None]
    missed = [row.name for row in rows if misses(row, quality)]
    goal = f"{', '.join(missed)} below MLPerf Tiny's {quality}" if missed else ""
    if not targets:
        return goal
    score = targets[0].result
    is_lower_better = isinstance(score, Judged) and score.metric.is_lower_better
    worst = (max if is_lower_better else min)(targets, key=lambda row: score_of(row)[0])
    is_tie = len(targets) > 1 and len({score_of(row)[0] for row in targets}) == 1
    which = "every target" if is_tie else f"the {'highest' if is_lower_better else 'lowest'} target is {worst.name}"
    return "; ".join(filter(None, (f"{which}: {score_text(worst)}", goal)))


def score_text(row: Row) -> str:
    """Return the figure of a row with its unit."""
    value, unit = score_of(row)
    digits = f"{value:.1f}" if unit.startswith("%") else f"{value:.4g}"
    return "" if row.result is None else f"{digits} {unit}"


def wake_words_text(score: WakeWords) -> str:
    """Return the counts and rates of a stream."""
    return (
        f"{score.true_positives} of {score.words} wake words, {score.false_positives} false positives in "
        f"{score.seconds:g} s: {score.false_accepts_per_hour:.1f} false accepts and {score.false_rejects_per_hour:.1f} "
        "false rejects an hour"
    )


def confusion_tables(confusions: Mapping[str, NDArray[np.int64]]) -> list[Table]:
    """Return a table for each row of a result: count of each true class (down) and predicted class (across)."""
    return [
        Table(
            "confusion",
            [number("", str(n - 1) if n else "class", itemgetter(n)) for n in range(len(matrix) + 1)],
            [(n, *row) for n, row in enumerate(matrix.tolist())],
            f"{name}: classes taken for each other",
            terminal="on request",
        )
        for name, matrix in confusions.items()
    ]


def class_table(rows: Sequence[Row]) -> Table:
    """Return the accuracy of each class; empty for other scores."""
    scores = [row.result for row in rows if isinstance(row.result, Accuracy)]
    if not scores:
        return Table()
    columns = [
        number("", "class", itemgetter(0)),
        number("", "of", itemgetter(1)),
        *(number("", s.name, itemgetter(n + 2)) for n, s in enumerate(scores)),
    ]
    cells = [
        (n, c.total, *(f"{100 * s.classes[n].right / c.total:.1f} %" if c.total else "" for s in scores))
        for n, c in enumerate(scores[0].classes)
    ]
    return Table("per_class", columns, cells, "Accuracy of each class", terminal="on request")


def _slowest(row: Row) -> float | None:
    return min(w.throughput for w in row.result.windows) if isinstance(row.result, Performance) else None


def _fastest(row: Row) -> float | None:
    return max(w.throughput for w in row.result.windows) if isinstance(row.result, Performance) else None


def _met(row: Row) -> str:
    if not isinstance(row.result, Performance):
        return ""
    return f"not conforming: {row.result.shortfall}" if row.result.shortfall else "met"


_SCORES: dict[type[Score | Performance], tuple[Column, ...]] = {
    Accuracy: (
        number("right", "right", "result.right"),
        number("samples", "of", "result.total"),
        number("accuracy_percent", "accuracy", "result.percent", ".1f", "%", bar=True),
        number("interval_percent", "95 % interval", "result.interval_percent", lambda r: _interval(r), rank=1),
        number("auc", "AUC", "result.auc", ".3f", rank=2),
        Column("classes", get=lambda r: None if r.result is None else _classes(r.result)),
    ),
    Detection: (
        number("normal", "normal", "result.normal"),
        number("anomalies", "anomalies", "result.anomalies"),
        number("windows", "windows", "result.windows"),
        number("auc", "AUC", "result.auc", ".3f", bar=True),
        Column("errors", get="result.errors"),
    ),
    Judged: (
        number("samples", "samples", "result.samples"),
        Column("metric", "metric", get="result.metric.name"),
        number(
            "score", "score", "result.value", lambda r: r.result and r.result.metric.text_of(r.result.value), bar=True
        ),
    ),
    WakeWords: (
        number("true_positives", "detected", "result.true_positives", bar=True),
        number("words", "of", "result.words"),
        number("false_negatives", "missed", "result.false_negatives"),
        number("false_rejects_per_hour", "missed an hour", "result.false_rejects_per_hour", ".1f"),
        number("false_positives", "false alarms", "result.false_positives"),
        number("false_accepts_per_hour", "false alarms an hour", "result.false_accepts_per_hour", ".1f"),
        number("seconds", "stream", "result.seconds", unit="s", rank=1),
    ),
    Performance: (
        number("inferences_per_second", "inferences/s", "result.throughput", ".3f", bar=True),
        number("", "time", lambda r: r.result and 1000 / r.result.throughput, ".3f", "ms"),
        number("", "slowest", _slowest, ".3f", "1/s", rank=1),
        number("", "fastest", _fastest, ".3f", "1/s", rank=2),
        number("", "inferences", lambda r: r.result and sum(w.inferences for w in r.result.windows), rank=3),
        Column("inputs", get=lambda r: r.result and [asdict(window) for window in r.result.windows]),
        Column("conforms", get=lambda r: r.result and not r.result.shortfall),
        Column(
            "shortfall", "MLPerf Tiny's 10 s each", get=lambda r: (r.result and r.result.shortfall) or None, text=_met
        ),
    ),
}


def _interval(row: Row) -> str:
    return interval_text(row.result.right, row.result.total) if isinstance(row.result, Accuracy) else ""


def _classes(accuracy: Accuracy) -> list[dict[str, int]]:
    return [{"class": n, "right": c.right, "samples": c.total} for n, c in enumerate(accuracy.classes)]

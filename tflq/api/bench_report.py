"""What `bench` measured, as JSON: rows of each kind of score, and a board's comparison."""

from __future__ import annotations

from dataclasses import asdict

from tflq.api.result import picked
from tflq.benchmarks.accuracy import Accuracy
from tflq.benchmarks.anomaly import Detection
from tflq.benchmarks.board import Comparison
from tflq.benchmarks.rows import Row
from tflq.benchmarks.truth import Judged
from tflq.benchmarks.wake_words import WakeWords
from tflq.quoting import Json


def row_report(row: Row) -> dict[str, Json]:
    """Return what was measured of one candidate, or why it was refused."""
    found = row.found
    if found is None:
        return {"name": row.name, "refused": row.refusal}
    if isinstance(found, Accuracy):
        classes = [{"class": n, "right": c.right, "samples": c.total} for n, c in enumerate(found.classes)]
        scores = {"right": found.right, "samples": found.total, "accuracy_percent": found.percent, "auc": found.auc}
        interval = {"interval_percent": list(found.interval_percent)}
        return {"name": row.name, **scores, **interval, "classes": classes}
    if isinstance(found, WakeWords):
        counts = ("words", "true_positives", "false_negatives", "false_positives", "seconds")
        rates = ("false_accepts_per_hour", "false_rejects_per_hour")
        return {"name": row.name, **picked(found, *counts, *rates)}
    if isinstance(found, Judged):
        return {"name": row.name, "samples": found.samples, "metric": found.metric.name, "score": found.value}
    if isinstance(found, Detection):
        return {"name": row.name, **picked(found, "normal", "anomalies", "windows", "auc", "errors")}
    return {
        "name": row.name,
        "inferences_per_second": found.throughput,
        "inputs": [asdict(window) for window in found.windows],
        "conforms": not found.shortfall,
        "shortfall": found.shortfall or None,
    }


def comparison_report(found: Comparison) -> dict[str, Json]:
    """Return how a board's answers compare with the interpreter's."""
    return {**picked(found, "samples", "equal"), "differences": [asdict(d) for d in found.differences]}

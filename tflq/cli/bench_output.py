"""What `tflq bench` prints and writes: one row for the model as it is, one for each target or board."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tflq.cli import output

if TYPE_CHECKING:
    from tflq.benchmarks.accuracy import Accuracy
    from tflq.benchmarks.anomaly import Detection
    from tflq.benchmarks.performance import Performance
    from tflq.benchmarks.results_layout import System
    from tflq.benchmarks.rows import Row
    from tflq.benchmarks.scoring import DataSet
    from tflq.benchmarks.tasks import Task

SIMULATION = "simulation on this computer: no figure is the speed of a chip"
STREAM = "sww01 is judged by false positives and negatives over a stream, which windows in files do not give"


@dataclass(frozen=True)
class BenchReport:
    """What was asked.

    Attributes:
        task: None for any folder with labels.
        path: the model.
        mode: "accuracy" or "performance".
        settings: of the targets, as they were given.
        per_class: show each class.
        source: where times come from, in words.
    """

    task: Task | None
    path: str
    mode: str
    settings: tuple[str, ...]
    per_class: bool
    source: str = SIMULATION

    @property
    def title(self) -> str:
        """The task's name and what it asks, or that there is none."""
        return f"{self.task.name}, {self.task.title}" if self.task else "a folder with labels"


def show(report: BenchReport, rows: Sequence[Row], as_json: bool, others: dict[str, output.Json] | None = None) -> None:
    """Print the rows as a table or as JSON; `others` are further entries of the JSON."""
    if as_json:
        output.json_report({**_head(report), "rows": [as_entry(row) for row in rows], **(others or {})})
        return
    output.line(f"{report.title}: {report.path}")
    if report.settings:
        output.line(f"settings: {' '.join(report.settings)}")
    measured = [row for row in rows if row.found is not None]
    (_show_performance if report.mode == "performance" else _show_scores)(report, measured)
    for row in rows:
        if row.found is None:
            output.line(f"{row.name} refuses the model: {row.refusal}")


def as_entry(row: Row) -> dict[str, output.Json]:
    """Return a row for JSON."""
    from tflq.benchmarks.accuracy import Accuracy
    from tflq.benchmarks.anomaly import Detection

    found = row.found
    if found is None:
        return {"name": row.name, "refused": row.refusal}
    if isinstance(found, Accuracy):
        return {
            "name": row.name,
            "right": found.right,
            "samples": found.total,
            "accuracy_percent": found.percent,
            "auc": found.auc,
            "classes": [{"class": n, "right": c.right, "samples": c.total} for n, c in enumerate(found.classes)],
        }
    if isinstance(found, Detection):
        counts = {"normal": found.normal, "anomalies": found.anomalies, "windows": found.windows}
        return {"name": row.name, **counts, "auc": found.auc, "errors": list(found.errors)}
    return {
        "name": row.name,
        "inferences_per_second": found.throughput,
        "inputs": [{"file": w.file, "inferences": w.inferences, "seconds": w.seconds} for w in found.windows],
        "conforms": not found.shortfall,
        "shortfall": found.shortfall or None,
    }


def write_results(report: BenchReport, folder: Path, rows: Sequence[Row], data: DataSet) -> None:
    """Write each row's folder in the layout of mlcommons' results, and say where on standard error."""
    from tflq import __version__
    from tflq.benchmarks.results_layout import System

    for row in rows:
        notes = " ".join([row.name, *(report.settings if row.name != "as is" else ())])
        write_row(report, folder, row, System(f"tflq {row.name}", False, f"tflq {__version__}", notes), data)


def write_row(
    report: BenchReport, folder: Path, row: Row, system: System, data: DataSet, log: Sequence[str] = ()
) -> None:
    """Write one row; one that was refused has nothing to write."""
    from tflq.benchmarks.performance import Performance
    from tflq.benchmarks.results_layout import write_accuracy, write_performance

    if row.found is None or report.task is None:
        return
    if isinstance(row.found, Performance):
        where = write_performance(folder, system, report.task, row.found, log)
    elif row.values is not None:
        where = write_accuracy(folder, system, report.task, data, row.found, row.values, log)
    else:
        return
    output.warn(f"written: {where}")


def _head(report: BenchReport) -> dict[str, output.Json]:
    task, quality = report.task, report.task.quality if report.task else None
    return {
        "task": task.name if task else None,
        "model": report.path,
        "mode": report.mode,
        "source": report.source,
        "settings": list(report.settings),
        "mlperf_percent": quality.at_least if quality and quality.metric == "top-1" else None,
        "mlperf_auc": quality.at_least if quality and quality.metric == "auc" else None,
    }


def _show_performance(report: BenchReport, rows: Sequence[Row]) -> None:
    from tflq.benchmarks.performance import Performance

    found = [row.found for row in rows if isinstance(row.found, Performance)]
    output.table(
        ("as", "inferences/s", "ms", "slowest", "fastest", "inferences", "MLPerf Tiny's 10 s each"),
        [_performance_cells(row) for row in found],
        right=("inferences/s", "ms", "slowest", "fastest", "inferences"),
    )
    output.line(f"median of five inputs, one inference after the other; {report.source}")


def _performance_cells(row: Performance) -> tuple[str, ...]:
    rates = [window.throughput for window in row.windows]
    return (
        row.name,
        f"{row.throughput:.3f}",
        f"{1000 / row.throughput:.3f}",
        f"{min(rates):.3f}",
        f"{max(rates):.3f}",
        str(sum(window.inferences for window in row.windows)),
        f"not conforming: {row.shortfall}" if row.shortfall else "met",
    )


def _show_scores(report: BenchReport, rows: Sequence[Row]) -> None:
    from tflq.benchmarks.accuracy import Accuracy
    from tflq.benchmarks.anomaly import Detection

    quality = report.task.quality if report.task else None
    last = (f"MLPerf Tiny's {quality}",) if quality else ()
    scores = [row.found for row in rows if isinstance(row.found, (Accuracy, Detection))]
    verdicts = [(("met" if s.meets(quality) else "missed"),) if quality else () for s in scores]
    counts = ("right", "of", "accuracy") if isinstance(scores[0], Accuracy) else ("normal", "anomalies", "windows")
    cells = [(*_score_cells(s), *verdict) for s, verdict in zip(scores, verdicts, strict=True)]
    output.table(("as", *counts, "AUC", *last), cells, right=(*counts, "AUC"))
    if report.task is not None and quality is None:
        output.line(STREAM)
    if report.per_class:
        _show_classes([s for s in scores if isinstance(s, Accuracy)])


def _score_cells(found: Accuracy | Detection) -> tuple[str, ...]:
    from tflq.benchmarks.accuracy import Accuracy

    auc = "" if found.auc is None else f"{found.auc:.3f}"
    if isinstance(found, Accuracy):
        return found.name, str(found.right), str(found.total), f"{found.percent:.1f} %", auc
    return found.name, str(found.normal), str(found.anomalies), str(found.windows), auc


def _show_classes(scores: Sequence[Accuracy]) -> None:
    if not scores:
        return
    names = [score.name for score in scores]
    rows = []
    for number, of in enumerate(scores[0].classes):
        shares = [100 * s.classes[number].right / of.total if of.total else None for s in scores]
        rows.append((str(number), str(of.total), *("" if s is None else f"{s:.1f} %" for s in shares)))
    output.table(("class", "of", *names), rows, right=("class", "of", *names))

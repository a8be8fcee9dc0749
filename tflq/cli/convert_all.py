"""`tflq convert --target all`: a model's files for every target, and one table that compares them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tflq.cli import output
from tflq.cli.report_options import write_report

if TYPE_CHECKING:
    from tflq.analysis.inputs import Samples
    from tflq.benchmarks.accuracy import LabelledSamples
    from tflq.benchmarks.all_targets import TargetRow
    from tflq.graph import Model


def convert_all(
    path: str,
    model: Model,
    ranged: Model,
    samples: Samples,
    accuracy: str | None,
    folder: Path,
    report: Path | None,
    as_json: bool,
) -> int:
    """Write each target's files into a folder of its name and print the table.

    Returns:
        Exit status: 1 if a target refuses the model, else 0.

    Raises:
        UsageError: `accuracy` is not TASK=DIR.
        InputError, OutputError: data that cannot be read, files that cannot be written.
    """
    from tflq.analysis.executions import as_is
    from tflq.benchmarks.all_targets import summarise
    from tflq.converters.targets import find_target, target_names
    from tflq.files import output_folder

    labelled = labelled_samples(accuracy, model)
    names, reference = target_names(), as_is(model)
    with output.Bar("convert", len(names)) as bar:
        rows = []
        for name in names:
            rows.append(summarise(reference, ranged, find_target(name), samples, labelled))
            bar.advance(1)
    with output_folder(folder) as scratch:
        for row in rows:
            if not row.refused:
                (scratch / row.target).mkdir()
                for name, data in row.artefacts.items():
                    (scratch / row.target / name).write_bytes(data)
    score = "accuracy" if labelled else f"agreement with the model as it is, {samples.count} samples"
    if report is not None:
        from tflq.report.conversion import all_targets_page

        write_report(report, all_targets_page(path, rows, score))
    if as_json:
        output.json_report({"model": path, "folder": str(folder), "targets": [_json(row) for row in rows]})
    else:
        _print(path, rows, folder, "accuracy" if labelled else "agrees")
        if not labelled:
            output.line(f"agrees: share of {samples.count} samples whose highest output is that of the model as it is;")
            output.line("  --accuracy TASK=DIR measures accuracy on labelled data instead.")
    return 1 if any(row.refused for row in rows) else 0


def labelled_samples(accuracy: str | None, model: Model) -> LabelledSamples | None:
    """Read what --accuracy names; None where it is not given.

    Raises:
        UsageError: it is not TASK=DIR.
        InputError: data that cannot be read.
    """
    from tflq.benchmarks.accuracy import load
    from tflq.benchmarks.tasks import find_task

    if accuracy is None:
        return None
    task, equals, folder = accuracy.partition("=")
    if not equals:
        raise click.UsageError(f"--accuracy {accuracy}: give it as TASK=DIR, such as kws01=DIR")
    return load(find_task(task), Path(folder), model.main)


def _print(path: str, rows: list[TargetRow], folder: Path, score: str) -> None:
    output.line(f"{path}: {len(rows)} targets, files in {folder}")
    columns = ("target", score, "files", "worst layer", "its SQNR", "constraints")
    output.table(columns, [_cells(row) for row in rows], right=(score, "files", "its SQNR"))


def _cells(row: TargetRow) -> tuple[str, ...]:
    if row.score_percent is None:
        return (row.target, "refused", "", "", "", "; ".join(row.constraints))
    ratio = f"{row.worst_sqnr_db:.1f} dB" if row.worst_layer else ""
    layer = "not compared: other tensors" if row.worst_layer is None else row.worst_layer or "none differs"
    size = output.size(row.size_bytes)
    return (row.target, f"{row.score_percent:.1f} %", size, layer, ratio, "; ".join(row.constraints))


def _json(row: TargetRow) -> output.Json:
    return {
        "target": row.target,
        "score_percent": row.score_percent,
        "size_bytes": row.size_bytes,
        "files": {name: len(data) for name, data in row.artefacts.items()},
        "worst_layer": row.worst_layer or None,
        "worst_sqnr_db": row.worst_sqnr_db if row.worst_layer else None,
        "constraints": list(row.constraints),
    }

"""`tflq bench`: MLPerf Tiny's accuracy and performance, of a model as it is, for targets, and of a board."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tflq.cli import output
from tflq.cli.bench_board import board_options, measure_board
from tflq.cli.bench_output import BenchReport, show, write_results
from tflq.cli.calibration_options import (
    CalibrationChoice,
    calibrated,
    calibration,
    refuse_calibration_without_target,
)
from tflq.cli.common import THREADS_OPTION, read_model, reporting
from tflq.cli.report_options import report_option, write_report
from tflq.cli.target_options import choose_target, refuse_settings_without_target, target_settings

if TYPE_CHECKING:
    from tflq.benchmarks.rows import Candidate, Row
    from tflq.benchmarks.scoring import DataSet
    from tflq.cli.bench_board import BoardChoice
    from tflq.converters.settings import Settings
    from tflq.converters.targets import Target

ALL = "all"


@click.command("bench")
@click.argument("task_name", metavar="[TASK]", required=False)
@click.option("-m", "--model", "path", required=True, type=click.Path(), help="The .tflite file.")
@click.option(
    "-d",
    "--data",
    "folder",
    required=True,
    type=click.Path(path_type=Path),
    help="The folder with the samples and y_labels.csv, or a data description .json (docs/data.md).",
)
@click.option("-n", "--samples", "count", type=click.IntRange(min=1), help="Only the first samples.")
@click.option(
    "-t",
    "--target",
    "target_names",
    multiple=True,
    metavar="TARGET",
    help="Quantise for this target too; `all` is every one. Repeat it for more; --set and --layer hold for each.",
)
@target_settings
@calibration
@click.option(
    "--mode",
    type=click.Choice(("accuracy", "performance")),
    default="accuracy",
    show_default=True,
    help="performance: the speed of the simulation on this computer, median of five inputs.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    help="Time each input of performance mode for so long; 10 unless told, and less does not conform.",
)
@THREADS_OPTION
@click.option("--per-class", is_flag=True, help="Show the accuracy of each class as well; --json always has it.")
@click.option(
    "--at-least",
    type=click.FloatRange(0, 100),
    metavar="NUMBER",
    help="Exit with status 1 if any row is below this accuracy in percent, or this AUC (0..1) where that is the score.",
)
@click.option(
    "--results",
    "results_folder",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write the results in the layout of mlcommons' published ones too.",
)
@board_options
@report_option
@reporting
def command(
    task_name: str | None,
    path: str,
    folder: Path,
    count: int | None,
    target_names: tuple[str, ...],
    assignments: tuple[str, ...],
    layers: tuple[str, ...],
    mode: str,
    seconds: float | None,
    threads: int,
    per_class: bool,
    at_least: float | None,
    results_folder: Path | None,
    report: Path | None,
    as_json: bool,
    calibration: CalibrationChoice,
    board: BoardChoice | None,
) -> int:
    """Measure a model on TASK (kws01, vww01, ic01, ad01 or sww01): as it is and for each target.

    Without TASK the data set is any folder with y_labels.csv whose files hold what the model's input takes. With
    --port a board answers instead, and its results are compared with the interpreter's; the status is 1 if they differ.
    """
    from tflq.benchmarks.rows import candidates
    from tflq.benchmarks.scoring import load_data
    from tflq.benchmarks.tasks import find_task

    _refuse_contradictions(mode, seconds, at_least, task_name, results_folder)
    task = find_task(task_name) if task_name is not None else None
    if not target_names:
        refuse_settings_without_target(assignments, layers)
        refuse_calibration_without_target(calibration)
    targets = _targets(target_names, assignments, layers)
    model = read_model(path)
    data = load_data(task, folder, model.main, count)
    _check_threshold(at_least, data)
    chosen = candidates(model, calibrated(model, calibration), targets, keep_refused=ALL in target_names)
    for candidate in chosen:
        if candidate.execution is not None:
            candidate.execution.engine.threads = threads
    asked = BenchReport(task, path, mode, (*assignments, *layers), per_class)
    if board is not None:
        if report is not None:
            raise click.UsageError("--report is for models; a board's results are printed, or written with --results")
        return measure_board(board, asked, chosen, data, seconds, results_folder, as_json)
    rows = _measure(chosen, data, mode, seconds)
    show(asked, rows, as_json)
    if report is not None:
        _write_page(report, asked, rows, data)
    if results_folder is not None:
        write_results(asked, results_folder, rows, data)
    return 1 if at_least is not None and _is_below(rows, at_least) else 0


def _write_page(path: Path, asked: BenchReport, rows: list[Row], data: DataSet) -> None:
    from tflq.report.bench import bench_page

    facts = [
        ("model", asked.path),
        ("mode", asked.mode),
        ("samples", str(data.samples.count)),
        ("source", asked.source),
    ]
    facts += [("settings", " ".join(asked.settings))] if asked.settings else []
    quality = asked.task.quality if asked.task and asked.mode == "accuracy" else None
    write_report(path, bench_page(f"{asked.title}: {asked.path}", facts, rows, quality))


def _refuse_contradictions(
    mode: str, seconds: float | None, at_least: float | None, task_name: str | None, results: Path | None
) -> None:
    if mode == "accuracy" and seconds is not None:
        raise click.UsageError("--seconds is for --mode performance")
    if mode == "performance" and at_least is not None:
        raise click.UsageError("--at-least is for --mode accuracy")
    if task_name is None and results is not None:
        raise click.UsageError("--results has a folder for each task of MLPerf Tiny; name TASK")


def _targets(
    names: tuple[str, ...], assignments: tuple[str, ...], layers: tuple[str, ...]
) -> list[tuple[Target, Settings]]:
    from tflq.converters.targets import target_names

    if ALL not in names:
        return [choose_target(name, assignments, layers) for name in names]
    if len(names) > 1:
        raise click.UsageError("--target all is every target; leave the others away")
    if assignments or layers:
        raise click.UsageError("--set and --layer are settings of one target; --target all takes each one's defaults")
    return [choose_target(name, (), ()) for name in target_names()]


def _measure(chosen: list[Candidate], data: DataSet, mode: str, seconds: float | None) -> list[Row]:
    from tflq.benchmarks.performance import INPUTS, SECONDS
    from tflq.benchmarks.rows import measure_accuracy, measure_performance

    count = sum(candidate.execution is not None for candidate in chosen)
    if mode == "performance":
        with output.Bar("bench", INPUTS * count) as bar:
            return measure_performance(chosen, data, seconds or SECONDS, bar.advance)
    with output.Bar("bench", data.samples.count * count) as bar:
        return measure_accuracy(chosen, data, bar.advance)


def _check_threshold(at_least: float | None, data: DataSet) -> None:
    from tflq.benchmarks.anomaly import LabelledWindows

    if at_least is not None and at_least > 1 and isinstance(data, LabelledWindows):
        raise click.UsageError(f"--at-least {at_least:g}: the score is an AUC, 0..1")


def _is_below(rows: list[Row], at_least: float) -> bool:
    from tflq.benchmarks.accuracy import Accuracy
    from tflq.benchmarks.anomaly import Detection

    values = [
        row.found.percent if isinstance(row.found, Accuracy) else row.found.auc or 0.0
        for row in rows
        if isinstance(row.found, (Accuracy, Detection))
    ]
    return any(value < at_least for value in values)

"""`tflq bench`: accuracy on an MLPerf Tiny data set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tflq.cli import output
from tflq.cli.calibration_options import (
    CalibrationChoice,
    calibrated,
    calibration,
    refuse_calibration_without_target,
)
from tflq.cli.common import read_model, reporting
from tflq.cli.target_options import choose_target, refuse_settings_without_target, target_settings

if TYPE_CHECKING:
    from tflq.analysis.executions import Execution
    from tflq.bench.accuracy import Accuracy
    from tflq.bench.tasks import Task
    from tflq.converters.settings import Settings
    from tflq.converters.targets import Target
    from tflq.graph import Model


@click.command("bench")
@click.argument("task_name", metavar="TASK")
@click.option("-m", "--model", "path", required=True, type=click.Path(), help="The .tflite file.")
@click.option(
    "-d",
    "--data",
    "folder",
    required=True,
    type=click.Path(path_type=Path),
    help="The folder with the samples and y_labels.csv.",
)
@click.option(
    "-t",
    "--target",
    "target_names",
    multiple=True,
    metavar="TARGET",
    help="Quantise for this target too. Repeat it for more; --set and --layer hold for each.",
)
@target_settings
@calibration
@click.option(
    "--at-least",
    type=click.FloatRange(0, 100),
    metavar="PERCENT",
    help="Exit with status 1 if any row is below this accuracy.",
)
@reporting
def command(
    task_name: str,
    path: str,
    folder: Path,
    target_names: tuple[str, ...],
    assignments: tuple[str, ...],
    layers: tuple[str, ...],
    at_least: float | None,
    as_json: bool,
    calibration: CalibrationChoice,
) -> int:
    """Measure accuracy on TASK (kws01, vww01 or ic01): the model as it is and for each target.

    A prediction is the highest value, the lowest index on ties.
    """
    from tflq.bench.accuracy import load, measure
    from tflq.bench.tasks import find_task

    task = find_task(task_name)
    if not target_names:
        refuse_settings_without_target(assignments, layers)
        refuse_calibration_without_target(calibration)
    chosen = [choose_target(name, assignments, layers) for name in target_names]
    model = read_model(path)
    data = load(task, folder, model.main)
    executions = _executions(model, calibrated(model, calibration), chosen)
    with output.Bar("bench", data.samples.count * len(executions)) as bar:
        found = [measure(execution, data, bar.advance) for execution in executions]
    _print(task, path, found, [*assignments, *layers], as_json)
    return 1 if at_least is not None and any(row.percent < at_least for row in found) else 0


def _executions(model: Model, ranged: Model, chosen: list[tuple[Target, Settings]]) -> list[Execution]:
    from tflq.analysis.executions import as_is, for_target

    return [as_is(model), *(for_target(ranged.main, target, settings) for target, settings in chosen)]


def _print(task: Task, path: str, found: list[Accuracy], settings: list[str], as_json: bool) -> None:
    if as_json:
        rows: list[output.Json] = [
            {"name": a.name, "right": a.right, "samples": a.total, "accuracy_percent": a.percent} for a in found
        ]
        output.json_report(
            {
                "task": task.name,
                "model": path,
                "settings": settings,
                "mlperf_percent": task.target_percent,
                "rows": rows,
            }
        )
        return
    output.line(f"{task.name}, {task.title}: {path}")
    if settings:
        output.line(f"settings: {' '.join(settings)}")
    columns = ("as", "right", "of", "accuracy", f"MLPerf Tiny's {task.target_percent:g} %")
    output.table(
        columns,
        [
            (
                a.name,
                str(a.right),
                str(a.total),
                f"{a.percent:.1f} %",
                "met" if a.percent >= task.target_percent else "missed",
            )
            for a in found
        ],
        right=("right", "of", "accuracy"),
    )

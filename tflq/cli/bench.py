"""`tflq bench`: measure MLPerf Tiny's accuracy and performance, of a model, for targets, and of a board."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from tflq.api.bench import BenchOptions, bench
from tflq.api.options import SampleOptions, replace_options
from tflq.api.runtimes import RUNTIME_NAMES
from tflq.benchmarks.board import Board
from tflq.cli import completion, output
from tflq.cli.help import SectionedCommand
from tflq.cli.in_force import BACKEND_OPTION, option_value
from tflq.cli.options import (
    calibration_options,
    data_option,
    path_option,
    target_options,
    with_page,
    worker_options,
)
from tflq.cli.record_options import option, record

_option = partial(option, BenchOptions)
_board_option = partial(option, Board, prefix="board")


def _board(port: str | None, baud: int | None, timeout: float | None) -> Board | None:
    """Return the board's serial port; None without --port."""
    if port is not None:
        return Board(port, baud or Board.baud, timeout or Board.timeout)
    if baud is not None or timeout is not None:
        raise click.UsageError("--baud and --timeout need a board; add --port")
    return None


@click.command("bench", cls=SectionedCommand)
@click.argument("task", metavar="[TASK]", required=False, shell_complete=completion.tasks)
@option(bench, "model", "-m", "--model", required=True, type=click.Path())
@data_option(SampleOptions, "data", "-d", "--data", required=True, type=click.Path(path_type=Path))
@_option("labels", metavar="FILE")
@_option("take")
@_option("targets", "-t", "--target", metavar="TARGET", shell_complete=completion.targets)
@_option("runtimes", "--runtime", type=click.Choice(RUNTIME_NAMES[1:]))
@target_options()
@calibration_options
@_option("mode")
@_option("seconds", type=click.FloatRange(min=0, min_open=True))
@_option("threads", minimum=1)
@BACKEND_OPTION
@worker_options(BenchOptions)
@_option("recover")
@_option("metrics", "--metric", metavar="NAME")
@click.option("--confusion", is_flag=True, help="Show the confusion matrix; --json always contains it.")
@click.option("--per-class", is_flag=True, help="Show the accuracy of each class; --json always contains it.")
@_option("at_least", type=click.FloatRange(0, 100), metavar="NUMBER")
@_option("at_most", type=click.FloatRange(0, 100), metavar="PERCENT")
@path_option(
    "--results",
    "results_folder",
    metavar="DIR",
    help="Output folder for the results in the layout of MLCommons' published results.",
)
@record(
    "board",
    _board,
    _board_option("port", metavar="PORT"),
    _board_option("baud", minimum=1, default=None, show_default=str(Board.baud)),
    _board_option(
        "timeout",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        default=None,
        show_default=f"{Board.timeout:g}",
    ),
)
@with_page
def command(
    task: str | None,
    model: str,
    data: Path,
    board: Board | None,
    per_class: bool,
    confusion: bool,
    results_folder: Path | None,
    **options: object,
) -> int:
    """Measure the unchanged model and each target on TASK (kws01, vww01, ic01, ad01 or sww01).

    TASK can also be part of --data: TASK=DIR. Without it the data set is any folder with y_labels.csv and files in the
    format of the model's input. Exit status 1 if a score is outside --at-least or --at-most.

    With --port a board runs the model, and its results are compared with the interpreter's; exit status 1 if they
    differ.
    """
    if task is None and results_folder is not None:
        raise click.UsageError("--results needs TASK: it has a folder for each task of MLPerf Tiny")
    if board is not None and option_value("report") is not None:
        raise click.UsageError("--report needs a model; with --port, use --results")
    result = bench(model, data, task, replace_options(BenchOptions(board=board), options), progress=output.progress)
    if results_folder is not None:
        for folder in result.write_results(results_folder):
            output.warn(f"written: {folder}")
    return output.show(result, *(("per_class",) if per_class else ()), *(("confusion",) if confusion else ()))

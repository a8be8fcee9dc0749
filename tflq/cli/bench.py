"""`tflq bench`: MLPerf Tiny's accuracy and performance, of a model as it is, for targets, and of a board."""

from __future__ import annotations

from pathlib import Path

import click

from tflq.api.bench import BenchOptions, bench
from tflq.api.options import replace_options
from tflq.api.runtimes import RUNTIME_NAMES
from tflq.benchmarks.board import Board
from tflq.cli import completion, output
from tflq.cli.help import SectionedCommand
from tflq.cli.in_force import BACKEND_OPTION, option_value
from tflq.cli.options import (
    DATA_HELP,
    JOBS_OPTION,
    SCHEDULER_OPTION,
    THREADS_OPTION,
    calibration_options,
    path_option,
    read_span,
    record,
    target_options,
    with_page,
)
from tflq.cli.precision_options import LABELS_OPTION


def _board(port: str | None, baud: int | None, timeout: float | None) -> Board | None:
    """Return where the board is; None without --port."""
    if port is not None:
        return Board(port, baud or Board.baud, timeout or Board.timeout)
    if baud is not None or timeout is not None:
        raise click.UsageError("--baud and --timeout are for a board; add --port")
    return None


@click.command("bench", cls=SectionedCommand)
@click.argument("task", metavar="[TASK]", required=False, shell_complete=completion.tasks)
@click.option("-m", "--model", "model", required=True, type=click.Path(), help="The .tflite file.")
@path_option("-d", "--data", required=True, metavar="[TASK=]DIR", shell_complete=completion.task_folder, help=DATA_HELP)
@LABELS_OPTION
@click.option("--take", callback=read_span, metavar="START:STOP", help="Samples to use (default: all).")
@click.option(
    "-t",
    "--target",
    "targets",
    multiple=True,
    metavar="TARGET",
    shell_complete=completion.targets,
    help="Quantize for this target too; `all` is every one. Repeat it for more; --set and --layer hold for each.",
)
@click.option(
    "--runtime",
    "runtimes",
    multiple=True,
    type=click.Choice(RUNTIME_NAMES[1:]),
    help="Measure in this runtime, too (`tflq runtimes`). Repeat it for more.",
)
@target_options()
@calibration_options
@click.option(
    "--mode",
    type=click.Choice(("accuracy", "performance")),
    default=BenchOptions.mode,
    show_default=True,
    help="performance: the speed of the simulation on this computer, median of five inputs.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    help="Time each input of performance mode for so long; 10 unless told, and less does not conform.",
)
@THREADS_OPTION
@BACKEND_OPTION
@JOBS_OPTION
@SCHEDULER_OPTION
@click.option(
    "--recover",
    callback=read_span,
    metavar="START:STOP",
    help="Recover each target with these samples, too (docs/guides/recover.md), and measure everything on the others.",
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="Another figure: top-K (as top-3), sqnr (of the outputs, against the model as it is), or FILE.py:function, "
    "called with outputs [S, classes] and labels [S]; only files that you trust. Of boxes map, map50, map75; of masks "
    "miou; of texts wer (docs/guides/data.md). Repeat it for more.",
)
@click.option("--confusion", is_flag=True, help="Show which classes were taken for which; --json always has it.")
@click.option("--per-class", is_flag=True, help="Show the accuracy of each class as well; --json always has it.")
@click.option(
    "--at-least",
    type=click.FloatRange(0, 100),
    metavar="NUMBER",
    help="Exit with status 1 if any row is below this accuracy in percent, or this AUC, mAP or mIoU (0..1) where that "
    "is the score.",
)
@click.option(
    "--at-most",
    type=click.FloatRange(0, 100),
    metavar="PERCENT",
    help="The same above this word error rate, where that is the score.",
)
@path_option(
    "--results",
    "results_folder",
    metavar="DIR",
    help="Write the results in the layout of mlcommons' published ones too.",
)
@record(
    "board",
    _board,
    click.option(
        "--port", "board__port", metavar="PORT", help="Let the board on this serial port answer, such as /dev/ttyACM0."
    ),
    click.option(
        "--baud", "board__baud", type=click.IntRange(min=1), help=f"Speed of the port; {Board.baud} unless told."
    ),
    click.option(
        "--timeout",
        "board__timeout",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help=f"How long the board may be silent; {Board.timeout:g} unless told.",
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
    """Measure a model on TASK (kws01, vww01, ic01, ad01 or sww01): as it is and for each target.

    TASK may stand with the folder: --data TASK=DIR. Without it the data set is any folder with y_labels.csv whose files
    hold what the model's input takes. With --port a board answers instead, and its results are compared with the
    interpreter's; the status is 1 if they differ.
    """
    if task is None and results_folder is not None:
        raise click.UsageError("--results has a folder for each task of MLPerf Tiny; name TASK")
    if board is not None and option_value("report") is not None:
        raise click.UsageError("--report is for models; a board's results are printed, or written with --results")
    found = bench(model, data, task, replace_options(BenchOptions(board=board), options), progress=output.progress)
    if results_folder is not None:
        for folder in found.write_results(results_folder):
            output.warn(f"written: {folder}")
    return output.show(found, *(("per_class",) if per_class else ()), *(("confusion",) if confusion else ()))

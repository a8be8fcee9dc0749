"""`tflq bench`: MLPerf Tiny's accuracy and performance, of a model as it is, for targets, and of a board."""

from __future__ import annotations

from pathlib import Path

import click

from tflq.api.bench import BenchOptions, BenchResult, bench
from tflq.api.options import changed
from tflq.api.runtimes import RUNTIME_NAMES
from tflq.benchmarks.accuracy import Accuracy
from tflq.benchmarks.anomaly import Detection
from tflq.benchmarks.board import Board, BoardRun
from tflq.benchmarks.performance import Performance
from tflq.benchmarks.scoring import Score
from tflq.benchmarks.significance import interval_text
from tflq.benchmarks.truth import Judged
from tflq.benchmarks.wake_words import WakeWords
from tflq.cli import completion, output
from tflq.cli.help import SectionedCommand
from tflq.cli.in_force import BACKEND_OPTION
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
from tflq.report.bench import class_table, confusion_tables

STREAM = "sww01 is judged by false positives and negatives over a stream, which windows in files do not give"
_COLUMNS: dict[type[Score], tuple[str, ...]] = {
    Accuracy: ("right", "of", "accuracy", "95 % interval", "AUC"),
    Detection: ("normal", "anomalies", "windows", "AUC"),
    Judged: ("samples", "score"),
    WakeWords: ("found", "of", "missed", "an hour", "false alarms", "an hour"),
}
_SHOWN = 5
"""Samples of a board that differ, in the text."""


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
    help="Recover each target with these samples, too (docs/recover.md), and measure everything on the others.",
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="Another figure: top-K (as top-3), sqnr (of the outputs, against the model as it is), or FILE.py:function, "
    "called with outputs [S, classes] and labels [S]; only files that you trust. Of boxes map, map50, map75; of masks "
    "miou; of texts wer (docs/data.md). Repeat it for more.",
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
    report: Path | None,
    as_json: bool,
    **options: object,
) -> int:
    """Measure a model on TASK (kws01, vww01, ic01, ad01 or sww01): as it is and for each target.

    TASK may stand with the folder: --data TASK=DIR. Without it the data set is any folder with y_labels.csv whose files
    hold what the model's input takes. With --port a board answers instead, and its results are compared with the
    interpreter's; the status is 1 if they differ.
    """
    if task is None and results_folder is not None:
        raise click.UsageError("--results has a folder for each task of MLPerf Tiny; name TASK")
    if board is not None and report is not None:
        raise click.UsageError("--report is for models; a board's results are printed, or written with --results")
    found = bench(model, data, task, changed(BenchOptions(board=board), options), progress=output.progress)
    output.show(found, as_json, lambda: _print(found, per_class, confusion))
    if report is not None:
        found.write_report(report)
    if results_folder is not None:
        for folder in found.write_results(results_folder):
            output.warn(f"written: {folder}")
    return 0 if found.is_kept else 1


def _print(found: BenchResult, per_class: bool, confusion: bool) -> None:
    output.line(f"{found.title}: {found.model}")
    if found.settings:
        output.line(f"settings: {' '.join(found.settings)}")
    if found.mode == "performance":
        _print_performance(found)
    else:
        _print_scores(found, per_class)
        for matrix in confusion_tables(found.confusions) if confusion else ():
            output.table(matrix.columns, matrix.rows, right=matrix.columns)
    for row in found.measured:
        if row.found is None:
            output.line(f"{row.name} refuses the model: {row.refusal}")
    if found.board is not None:
        _print_comparison(*found.board)


def _print_performance(found: BenchResult) -> None:
    measured = [row.found for row in found.measured if isinstance(row.found, Performance)]
    output.table(
        ("as", "inferences/s", "ms", "slowest", "fastest", "inferences", "MLPerf Tiny's 10 s each"),
        [_performance(row) for row in measured],
        right=("inferences/s", "ms", "slowest", "fastest", "inferences"),
    )
    output.line(f"median of five inputs, one inference after the other; {found.source}")


def _performance(row: Performance) -> tuple[str, ...]:
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


def _print_scores(found: BenchResult, per_class: bool) -> None:
    quality = found.quality
    last = (f"MLPerf Tiny's {quality}",) if quality else ()
    scores = [row.found for row in found.measured if isinstance(row.found, (Accuracy, Detection, WakeWords, Judged))]
    verdicts = [
        (("met" if s.meets(quality) else "missed"),) if quality and not isinstance(s, Judged) else () for s in scores
    ]
    counts, pairs = _COLUMNS[type(scores[0])], found.pairs
    beside = (f"beside {scores[0].name} (McNemar)",) if pairs else ()
    paired = [(str(pairs.get(s.name, "")),) if pairs else () for s in scores]
    own = [metric.name for metric in found.metrics]
    figures = [[m.text_of(found.figures[s.name][m.name]) for m in found.metrics] for s in scores]
    parts = zip(scores, figures, paired, verdicts, strict=True)
    cells = [(*_score(s), *values, *more, *verdict) for s, values, more, verdict in parts]
    least = (*beside, "AUC", "95 % interval")
    output.table(("as", *counts, *own, *beside, *last), cells, right=(*counts, *own), least=least)
    if found.task is not None and quality is None:
        output.line(STREAM)
    classes = class_table(found.measured) if per_class else None
    if classes is not None:
        output.table(classes.columns, classes.rows, right=classes.numbers)


def _score(found: Score) -> tuple[str, ...]:
    if isinstance(found, WakeWords):
        errors = (found.false_negatives, found.false_positives)
        rates = (found.false_rejects_per_hour, found.false_accepts_per_hour)
        counted = [text for n, rate in zip(errors, rates, strict=True) for text in (str(n), f"{rate:.1f}")]
        return found.name, str(found.true_positives), str(found.words), *counted
    if isinstance(found, Judged):
        return found.name, str(found.samples), f"{found.metric.name} {found.metric.text_of(found.value)}"
    auc = "" if found.auc is None else f"{found.auc:.3f}"
    if isinstance(found, Accuracy):
        counts = (str(found.right), str(found.total), f"{found.percent:.1f} %")
        return found.name, *counts, interval_text(found.right, found.total), auc
    return found.name, str(found.normal), str(found.anomalies), str(found.windows), auc


def _print_comparison(run: BoardRun, reference: str) -> None:
    found = run.comparison
    output.line(f"beside {reference}: the results of {found.equal} of {found.samples} samples are equal")
    if found.differences:
        columns = ("sample", f"board '{run.row.name}'", reference)
        shown = found.differences[:_SHOWN]
        output.table(columns, [(d.sample, " ".join(d.device), " ".join(d.interpreter)) for d in shown])
        if len(found.differences) > _SHOWN:
            output.line(f"and {len(found.differences) - _SHOWN} more; --json lists all")

"""`tflq bench --port`: a board answers, and the interpreter judges each of its results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tflq.cli import output
from tflq.cli.bench_output import BenchReport, show, write_row

if TYPE_CHECKING:
    from tflq.analysis.executions import Execution
    from tflq.benchmarks.board import Comparison
    from tflq.benchmarks.host import Host, Identity
    from tflq.benchmarks.rows import Candidate, Row
    from tflq.benchmarks.scoring import DataSet

BAUD = 115200
TIMEOUT_S = 5.0
DEVICE = "a device over its serial port, timed by its own clock"
SHOWN = 5


@dataclass(frozen=True)
class BoardChoice:
    """Where the board is: its port, its speed in baud, and the silence in seconds after which it counts as dead."""

    port: str
    baud: int
    timeout: float


def board_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --port, --baud and --timeout; the function gets them as `board`, None without --port."""

    @wraps(function)
    def command(
        *arguments: object, port: str | None, baud: int | None, timeout: float | None, **others: object
    ) -> object:
        if port is None and (baud is not None or timeout is not None):
            raise click.UsageError("--baud and --timeout are for a board; add --port")
        if port is not None and others.get("at_least") is not None:
            raise click.UsageError("--at-least is for models; with --port the status is 1 if the board differs")
        board = None if port is None else BoardChoice(port, baud or BAUD, timeout or TIMEOUT_S)
        return function(*arguments, board=board, **others)

    for option in reversed(
        (
            click.option(
                "--port", metavar="PORT", help="Let the board on this serial port answer, such as /dev/ttyACM0."
            ),
            click.option("--baud", type=click.IntRange(min=1), help=f"Speed of the port; {BAUD} unless told."),
            click.option(
                "--timeout",
                type=click.FloatRange(min=0, min_open=True),
                metavar="SECONDS",
                help=f"How long the board may be silent; {TIMEOUT_S:g} unless told.",
            ),
        )
    ):
        command = option(command)
    return command


def measure_board(
    board: BoardChoice,
    report: BenchReport,
    chosen: Sequence[Candidate],
    data: DataSet,
    seconds: float | None,
    results: Path | None,
    as_json: bool,
) -> int:
    """Drive a board, compare it with the last of `chosen`, and print and write what was found.

    Returns:
        Exit status: 1 if a sample's results differ.

    Raises:
        UsageError: no task, or several targets.
        DeviceError: no board, silence, or answers outside the protocol.
    """
    from tflq import __version__
    from tflq.benchmarks.board import remember
    from tflq.benchmarks.host import Host
    from tflq.benchmarks.results_layout import System
    from tflq.benchmarks.serial_port import open_port

    if report.task is None:
        raise click.UsageError("--port needs TASK: the board says which one it runs, and it must be that")
    if len(chosen) > 2 or (execution := chosen[-1].execution) is None:
        raise click.UsageError("--port compares with one arithmetic: the model as it is, or one --target")
    log: list[str] = []
    stream = open_port(board.port, board.baud)
    try:
        host = Host(stream, board.port, board.timeout, remember(log))
        identity = _identify(host, board.port, report.task.name)
        if report.mode == "performance":
            row, comparison = _performance(host, identity.name, execution, data, seconds)
        else:
            row, comparison = _accuracy(host, identity.name, execution, data)
    finally:
        stream.close()
    source = f"a virtual device, {identity.simulation}" if identity.simulation else DEVICE
    _show(replace(report, source=source), row, comparison, execution.name, as_json)
    if results is not None:
        system = System(
            identity.name, not identity.simulation, f"tflq {__version__}", f"compared with {execution.name}"
        )
        write_row(report, results, row, system, data, log)
    return 1 if comparison.differences else 0


def _identify(host: Host, port: str, task_name: str) -> Identity:
    from tflq.errors import DeviceError

    identity = host.identify()
    if identity.model != task_name:
        raise DeviceError(f"{port}: the board '{identity.name}' runs {identity.model}, TASK is {task_name}")
    return identity


def _accuracy(host: Host, name: str, execution: Execution, data: DataSet) -> tuple[Row, Comparison]:
    from tflq.benchmarks.board import as_numbers, compare, run_samples, samples_of
    from tflq.benchmarks.rows import Row
    from tflq.benchmarks.scoring import run_data, score

    with output.Bar(f"board {name}", data.samples.count) as bar:
        texts = run_samples(host, samples_of(data), bar.advance)
    expected = run_data(execution, data)
    values = as_numbers(texts, expected.shape[1])
    return Row(name, score(name, values, data), values=values), compare(samples_of(data), texts, expected)


def _performance(
    host: Host, name: str, execution: Execution, data: DataSet, seconds: float | None
) -> tuple[Row, Comparison]:
    from tflq.benchmarks.board import compare, samples_of, time_board
    from tflq.benchmarks.performance import INPUTS, SECONDS
    from tflq.benchmarks.rows import Row
    from tflq.benchmarks.scoring import first_samples, run_data

    chosen = first_samples(data, INPUTS)
    with output.Bar(f"board {name}", INPUTS) as bar:
        found, texts = time_board(host, name, samples_of(chosen), seconds or SECONDS, bar.advance)
    return Row(name, found), compare(samples_of(chosen), texts, run_data(execution, chosen))


def _show(report: BenchReport, row: Row, comparison: Comparison, reference: str, as_json: bool) -> None:
    entry: dict[str, output.Json] = {
        "reference": reference,
        "samples": comparison.samples,
        "equal": comparison.equal,
        "differences": [
            {"sample": d.sample, "device": d.device, "interpreter": d.interpreter} for d in comparison.differences
        ],
    }
    show(report, [row], as_json, {"comparison": entry})
    if as_json:
        return
    output.line(f"beside {reference}: the results of {comparison.equal} of {comparison.samples} samples are equal")
    if comparison.differences:
        columns = ("sample", f"board '{row.name}'", reference)
        shown = comparison.differences[:SHOWN]
        output.table(columns, [(d.sample, " ".join(d.device), " ".join(d.interpreter)) for d in shown])
        if len(comparison.differences) > SHOWN:
            output.line(f"and {len(comparison.differences) - SHOWN} more; --json lists all")

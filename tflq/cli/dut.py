"""`tflq dut`: a virtual device under test on a pseudo-terminal, for mlcommons' runner and others."""

from __future__ import annotations

import signal
from pathlib import Path

import click

from tflq.cli import output
from tflq.cli.calibration_options import (
    CalibrationChoice,
    calibrated,
    calibration,
    refuse_calibration_without_target,
)
from tflq.cli.common import LIMIT_OPTION, MODEL_ARGUMENT, read_model
from tflq.cli.target_options import choose_execution, one_arithmetic


@click.command("dut")
@MODEL_ARGUMENT
@click.option("--task", "task_name", required=True, metavar="TASK", help="What the model is: kws01, vww01, ic01, ad01.")
@one_arithmetic
@calibration
@click.option(
    "--time-us",
    type=click.IntRange(min=1),
    metavar="N",
    help="State this time for an inference, in microseconds, and answer no earlier; measured without it.",
)
@click.option("--name", metavar="NAME", help="How the device calls itself; tflq and the arithmetic unless told.")
@click.option(
    "--link",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Make a symbolic link to the port while the device runs, for a name that stays the same.",
)
@LIMIT_OPTION
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
def command(
    model: str,
    task_name: str,
    arithmetic: str | None,
    target_name: str | None,
    assignments: tuple[str, ...],
    layers: tuple[str, ...],
    calibration: CalibrationChoice,
    time_us: int | None,
    name: str | None,
    link: Path | None,
) -> None:
    """Run MODEL behind the serial protocol of MLPerf Tiny until interrupted.

    The first line printed is the port, which a host opens like that of a board. Times are those of this computer unless
    --time-us states one; the answers to `profile` and `infer` say which.
    """
    from tflq.benchmarks.device import Device
    from tflq.benchmarks.inference import Inference
    from tflq.benchmarks.pseudo_terminal import PseudoTerminal, linked
    from tflq.benchmarks.tasks import find_task

    task = find_task(task_name)
    found = read_model(model)
    if target_name is None:
        refuse_calibration_without_target(calibration)
    execution = choose_execution(calibrated(found, calibration), arithmetic, target_name, assignments, layers)
    inference = Inference(task, execution)
    inference.check()
    device = Device(inference, name or f"tflq {execution.name}", time_us)
    terminal = PseudoTerminal()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the link goes with the device
    try:
        with linked(terminal.path, link):
            output.line(str(link or terminal.path))
            output.flush()
            terminal.serve(device)
    finally:
        terminal.close()

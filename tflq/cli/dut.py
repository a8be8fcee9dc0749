"""`tflq dut`: a virtual device under test on a pseudo-terminal, for mlcommons' runner and others."""

from __future__ import annotations

import signal

import click

from tflq.api.dut import DutOptions, dut
from tflq.api.options import replace_options
from tflq.cli import output
from tflq.cli.in_force import DEBUG_OPTION, LIMIT_OPTION
from tflq.cli.options import (
    ARITHMETIC_OPTION,
    MODEL_ARGUMENT,
    RUNTIME_OPTION,
    calibration_options,
    path_option,
    target_options,
)


@click.command("dut")
@MODEL_ARGUMENT
@click.option("--task", required=True, metavar="TASK", help="What the model is: kws01, vww01, ic01, ic02, ad01, sww01.")
@ARITHMETIC_OPTION
@RUNTIME_OPTION
@target_options("Quantize for this target and run its integers.")
@calibration_options
@click.option(
    "--time-us",
    type=click.IntRange(min=1),
    metavar="N",
    help="State this time for an inference, in microseconds, and answer no earlier; measured without it.",
)
@path_option(
    "--streams",
    metavar="DIR",
    help="For sww01: recordings; the device then stands behind an interface board that plays them, as the runner asks.",
)
@click.option("--name", metavar="NAME", help="How the device calls itself; tflq and the arithmetic unless told.")
@path_option(
    "--link",
    metavar="PATH",
    help="Make a symbolic link to the port while the device runs, for a name that stays the same.",
)
@LIMIT_OPTION
@DEBUG_OPTION
def command(model: str, task: str, **options: object) -> None:
    """Run MODEL behind the serial protocol of MLPerf Tiny until interrupted.

    The first line printed is the port, which a host opens like that of a board. Times are those of this computer unless
    --time-us states one; the answers to `profile` and `infer` say which.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the link goes with the device
    with dut(model, task, replace_options(DutOptions(), options)) as device:
        output.line(device.port)
        output.flush()
        device.serve()

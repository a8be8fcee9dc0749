"""`tflq dut`: emulate a device under test on a pseudo-terminal, for MLCommons' runner and other hosts."""

from __future__ import annotations

import signal
from functools import partial

import click

from tflq.api.dut import DutOptions, dut
from tflq.api.options import replace_options
from tflq.cli import output
from tflq.cli.in_force import DEBUG_OPTION, LIMIT_OPTION
from tflq.cli.options import (
    MODEL_ARGUMENT,
    calibration_options,
    target_options,
)
from tflq.cli.record_options import help_of, option

_option = partial(option, DutOptions)


@click.command("dut")
@MODEL_ARGUMENT
@option(dut, "task", required=True, metavar="TASK")
@_option("arithmetic")
@_option("runtime")
@target_options(help_of(DutOptions, "target"))
@calibration_options
@_option("time_us", minimum=1, metavar="N")
@_option("streams", metavar="DIR")
@_option("name", metavar="NAME")
@_option("link", metavar="PATH")
@LIMIT_OPTION
@DEBUG_OPTION
def command(model: str, task: str, **options: object) -> None:
    """Run MODEL under the serial protocol of MLPerf Tiny until interrupted.

    The first printed line is the port, which a host opens in the same way as a board's port. Times are measured on this
    computer unless --time-us states one; the replies to `profile` and `infer` specify the origin.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # removes the link at the end
    with dut(model, task, replace_options(DutOptions(), options)) as device:
        output.line(device.port)
        output.flush()
        device.serve()

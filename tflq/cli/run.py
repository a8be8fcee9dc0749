"""`tflq run`: run a model over many samples, in any arithmetic."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from tflq.api.options import SampleOptions, replace_options
from tflq.api.run import RunOptions, run
from tflq.cli import output
from tflq.cli.help import SectionedCommand
from tflq.cli.in_force import BACKEND_OPTION
from tflq.cli.options import (
    MODEL_ARGUMENT,
    calibration_options,
    reporting,
    sample_options,
    target_options,
    worker_options,
)
from tflq.cli.outputs import OutputPath, writing
from tflq.cli.record_options import help_of, option

_option = partial(option, RunOptions)


@click.command("run", cls=SectionedCommand)
@MODEL_ARGUMENT
@sample_options(1)
@_option("arithmetic")
@_option("runtime")
@target_options(help_of(RunOptions, "target"))
@calibration_options
@_option("state")
@_option("threads", minimum=1)
@BACKEND_OPTION
@worker_options(RunOptions)
@_option("all_tensors")
@_option("output", "-o", "--output", type=OutputPath(path_type=Path), metavar="FILE.npz")
@reporting
@writing
def command(model: str, samples: SampleOptions, **options: object) -> int:
    """Run MODEL over samples, and show or write its outputs.

    Samples have the model's own type and encoding (or are floating-point values, with --real); a target converts them
    itself.
    """
    return output.show(run(model, samples, replace_options(RunOptions(), options), progress=output.progress))

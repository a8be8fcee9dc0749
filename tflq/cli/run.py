"""`tflq run`: a model over many samples, in any arithmetic."""

from __future__ import annotations

import click

from tflq.api.options import SampleOptions, replace_options
from tflq.api.run import RunOptions, run
from tflq.cli import output
from tflq.cli.help import SectionedCommand
from tflq.cli.in_force import BACKEND_OPTION
from tflq.cli.options import (
    ARITHMETIC_OPTION,
    JOBS_OPTION,
    MODEL_ARGUMENT,
    RUNTIME_OPTION,
    SCHEDULER_OPTION,
    STATE_OPTION,
    THREADS_OPTION,
    calibration_options,
    output_option,
    reporting,
    sample_options,
    target_options,
)
from tflq.cli.outputs import writing


@click.command("run", cls=SectionedCommand)
@MODEL_ARGUMENT
@sample_options(1)
@ARITHMETIC_OPTION
@RUNTIME_OPTION
@target_options("Quantize for this target and run its integers.")
@calibration_options
@STATE_OPTION
@THREADS_OPTION
@BACKEND_OPTION
@JOBS_OPTION
@SCHEDULER_OPTION
@click.option("--all-tensors", is_flag=True, help="Return every tensor that an operator writes, not the outputs alone.")
@output_option(
    "-o", "--output", metavar="FILE.npz", help="Write the tensors, each by its name: dtype[samples, *shape]."
)
@reporting
@writing
def command(model: str, samples: SampleOptions, **options: object) -> int:
    """Run MODEL over samples, and show or write what comes out.

    Samples are in the model's own type and encoding (or real numbers, with --real); a target converts them itself.
    """
    return output.show(run(model, samples, replace_options(RunOptions(), options), progress=output.progress))

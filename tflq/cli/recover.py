"""`tflq recover`: weights of few bits that work, without training."""

from __future__ import annotations

from pathlib import Path

import click

from tflq.api.options import SampleOptions, TargetOptions, replace_options
from tflq.api.recover import RecoverOptions, recover
from tflq.cli import output
from tflq.cli.help import SectionedCommand
from tflq.cli.in_force import BACKEND_OPTION
from tflq.cli.options import (
    JOBS_OPTION,
    MODEL_ARGUMENT,
    calibration_options,
    path_option,
    read_span,
    reporting,
    target_options,
    tflite_output,
)
from tflq.cli.outputs import writing
from tflq.cli.precision_options import DATA_OPTION, GIVEN_SAMPLES, LABELS_OPTION


@click.command("recover", cls=SectionedCommand)
@MODEL_ARGUMENT
@target_options("Whose integers the weights are for.", required=True)
@calibration_options
@DATA_OPTION
@LABELS_OPTION
@BACKEND_OPTION
@GIVEN_SAMPLES
@click.option("--take", "span", callback=read_span, metavar="START:STOP", help="Samples to fit to (default: all).")
@click.option(
    "--verify", callback=read_span, metavar="START:STOP", help="Report the results on these other samples, too."
)
@click.option("--random", is_flag=True, help="Take random samples where none are named.")
@click.option("--bias-only", is_flag=True, help="Leave all weights as they are.")
@click.option(
    "--rows",
    type=click.IntRange(min=2),
    default=RecoverOptions.rows,
    show_default=True,
    help="Output positions of a layer that are fitted to.",
)
@JOBS_OPTION
@path_option(
    "--results", metavar="FILE", help="Keep each layer as it comes, and do not find again what is in the file."
)
@tflite_output
@reporting
@writing
def command(model: str, target: TargetOptions, samples: SampleOptions, path: Path, **options: object) -> int:
    """Find weights and biases of MODEL that the target's integers reconstruct best, without training or labels.

    Writes a float model with its ranges, for the same target and settings of every other command. One sample of ten is
    kept aside; a layer keeps its old weights where new ones are worse there.
    """
    options["seed"] = samples.seed
    return output.show(
        recover(
            model,
            target,
            samples,
            replace_options(RecoverOptions(), options),
            path,
            progress=output.progress,
            tell=output.note,
        )
    )

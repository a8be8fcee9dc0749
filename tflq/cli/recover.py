"""`tflq recover`: recover accurate weights with few bits, without training."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from tflq.api.options import SampleOptions, TargetOptions, replace_options
from tflq.api.recover import DEFAULT_SAMPLES, RecoverOptions, recover
from tflq.cli import output
from tflq.cli.help import SectionedCommand
from tflq.cli.in_force import BACKEND_OPTION
from tflq.cli.options import (
    MODEL_ARGUMENT,
    calibration_options,
    reporting,
    target_options,
    tflite_output,
)
from tflq.cli.outputs import writing
from tflq.cli.precision_options import DATA_OPTION, LABELS_OPTION, TAKE_OPTION, given_samples
from tflq.cli.record_options import option

_option = partial(option, RecoverOptions)


@click.command("recover", cls=SectionedCommand)
@MODEL_ARGUMENT
@target_options("Target that the weights are recovered for.", required=True)
@calibration_options
@DATA_OPTION
@LABELS_OPTION
@BACKEND_OPTION
@given_samples(DEFAULT_SAMPLES)
@TAKE_OPTION
@_option("verify")
@_option("random")
@_option("bias_only")
@_option("rows", minimum=2)
@_option("jobs", "-j", "--jobs", minimum=1)
@_option("results", metavar="FILE")
@tflite_output
@reporting
@writing
def command(model: str, target: TargetOptions, samples: SampleOptions, path: Path, **options: object) -> int:
    """Find weights and biases of MODEL that the target's integers reconstruct best, without training or labels.

    The output is a float model with ranges, for the same target and settings in every other command. One sample of ten
    is kept aside; a layer keeps its old weights if new ones are worse on these samples.
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

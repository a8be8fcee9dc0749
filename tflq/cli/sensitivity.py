"""`tflq sensitivity`: what each layer alone does at each of its widths."""

from __future__ import annotations

import click

from tflq.api.options import SampleOptions, TargetOptions, replace_options
from tflq.api.sensitivity import SensitivityOptions, sensitivity
from tflq.cli import output
from tflq.cli.help import SectionedCommand
from tflq.cli.options import MODEL_ARGUMENT, calibration_options, target_options, with_page
from tflq.cli.precision_options import trials


@click.command("sensitivity", cls=SectionedCommand)
@MODEL_ARGUMENT
@target_options("A target with a choice of bits.", required=True)
@click.option("--spared", is_flag=True, help="The reverse: all layers have the bits, each alone is left at its widest.")
@click.option(
    "--float", "in_float", is_flag=True, help="Floating point takes the place of the widest, for the reference, too."
)
@calibration_options
@trials
@with_page
def command(model: str, target: TargetOptions, samples: SampleOptions, **options: object) -> int:
    """Measure accuracy and signal-to-noise ratio of MODEL with each layer alone at each of its widths.

    The other layers are at their widest. The ratio compares the outputs with those of the model as it is and needs no
    labels.
    """
    return output.show(
        sensitivity(model, target, samples, replace_options(SensitivityOptions(), options), progress=output.progress)
    )

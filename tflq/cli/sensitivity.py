"""`tflq sensitivity`: measure the effect of each layer in isolation at each of its widths."""

from __future__ import annotations

import click

from tflq.api.options import SampleOptions, TargetOptions, replace_options
from tflq.api.sensitivity import SensitivityOptions, sensitivity
from tflq.cli import output
from tflq.cli.help import SectionedCommand
from tflq.cli.options import MODEL_ARGUMENT, calibration_options, target_options, with_page
from tflq.cli.precision_options import trials
from tflq.cli.record_options import option


@click.command("sensitivity", cls=SectionedCommand)
@MODEL_ARGUMENT
@target_options("Target with selectable bits.", required=True)
@option(SensitivityOptions, "spared")
@option(SensitivityOptions, "in_float", "--float")
@calibration_options
@trials
@with_page
def command(model: str, target: TargetOptions, samples: SampleOptions, **options: object) -> int:
    """Measure accuracy and signal-to-noise ratio of MODEL with each layer in isolation at each of its widths.

    The other layers have their widest setting. The ratio compares the outputs with the unchanged model's outputs and
    needs no labels.
    """
    return output.show(
        sensitivity(model, target, samples, replace_options(SensitivityOptions(), options), progress=output.progress)
    )

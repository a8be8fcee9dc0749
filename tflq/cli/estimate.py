"""`tflq estimate`: what a network costs on a target."""

from __future__ import annotations

import click

from tflq.api.estimate import EstimateOptions, estimate
from tflq.api.options import CalibrationOptions, TargetOptions
from tflq.cli import output
from tflq.cli.help import SectionedCommand
from tflq.cli.options import MODEL_ARGUMENT, calibration_options, target_options, with_page


@click.command("estimate", cls=SectionedCommand)
@MODEL_ARGUMENT
@target_options("`tflq targets` lists them; gap9-ne16 and gap9-sq8 have evidence.", required=True)
@calibration_options
@with_page
def command(model: str, target: TargetOptions, calibration: CalibrationOptions) -> int:
    """Estimate cycles, time, energy and memory of MODEL on a target.

    Each figure says what it is worth: exact, fitted, single case or lower bound, with its error; what has too little
    evidence is not offered, and a network with such a layer has no total.
    """
    return output.show(estimate(model, target, EstimateOptions(calibration), progress=output.progress))

"""`tflq estimate`: estimate the cost of a network on a target."""

from __future__ import annotations

import click

from tflq.api.estimate import EstimateOptions, estimate
from tflq.api.options import CalibrationOptions, TargetOptions
from tflq.cli import output
from tflq.cli.help import SectionedCommand
from tflq.cli.options import MODEL_ARGUMENT, calibration_options, target_options, with_page


@click.command("estimate", cls=SectionedCommand)
@MODEL_ARGUMENT
@target_options("Target, as listed by `tflq targets`; gap9-ne16 and gap9-sq8 have evidence.", required=True)
@calibration_options
@with_page
def command(model: str, target: TargetOptions, calibration: CalibrationOptions) -> int:
    """Estimate cycles, time, energy and memory of MODEL on a target.

    Each figure has a grade (exact, fitted, single case or lower bound) and an error. If a layer has too little evidence
    for a figure, the network has a lower bound in place of a total.
    """
    return output.show(estimate(model, target, EstimateOptions(calibration), progress=output.progress))

"""`tflq estimate`: what a network costs on a target."""

from __future__ import annotations

from pathlib import Path

import click

from tflq.api.estimate import EstimateOptions, EstimateResult, estimate
from tflq.api.options import CalibrationOptions, TargetOptions
from tflq.cli import output
from tflq.cli.help import SectionedCommand
from tflq.cli.options import MODEL_ARGUMENT, calibration_options, target_options, with_page
from tflq.report.estimate import LAYER_COLUMNS, LAYER_NUMBERS, figures_of, headline, layer_rows, reasons


@click.command("estimate", cls=SectionedCommand)
@MODEL_ARGUMENT
@target_options("`tflq targets` lists them; gap9-ne16 and gap9-sq8 have evidence.", required=True)
@calibration_options
@with_page
def command(
    model: str, target: TargetOptions, calibration: CalibrationOptions, report: Path | None, as_json: bool
) -> None:
    """Estimate cycles, time, energy and memory of MODEL on a target.

    Each figure has a grade (exact, fitted, single case or lower bound) and an error. If a layer has too little evidence
    for a figure, the network has a lower bound in place of a total.
    """
    found = estimate(model, target, EstimateOptions(calibration), progress=output.progress)
    output.show(found, as_json, lambda: _print(found), report)


def _print(result: EstimateResult) -> None:
    found = result.estimate
    output.line(f"{result.model} for {result.target}: {headline(found)}")
    if not found.layers:
        return
    output.line()
    output.table(LAYER_COLUMNS, layer_rows(found), right=LAYER_NUMBERS)
    output.lines(reasons(found))
    output.line()
    output.table(("figure", "value", "basis"), [(name, str(f), f.basis) for name, f in figures_of(found)])
    output.lines(found.remarks)

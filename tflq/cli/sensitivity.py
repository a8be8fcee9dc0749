"""`tflq sensitivity`: what each layer alone does at each of its widths."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tflq.api.options import SampleOptions, TargetOptions, changed
from tflq.api.sensitivity import SensitivityOptions, SensitivityResult, sensitivity
from tflq.cli import output
from tflq.cli.help import SectionedCommand
from tflq.cli.options import MODEL_ARGUMENT, calibration_options, target_options, with_page
from tflq.cli.precision_options import trials
from tflq.report.precision import quality_head, value_text

if TYPE_CHECKING:
    from tflq.precision.sensitivity import Sensitivity
    from tflq.precision.trial import Result


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
def command(
    model: str, target: TargetOptions, samples: SampleOptions, report: Path | None, as_json: bool, **options: object
) -> None:
    """Measure accuracy and signal-to-noise ratio of MODEL with each layer alone at each of its widths.

    The other layers are at their widest. The ratio compares the outputs with those of the model as it is and needs no
    labels.
    """
    found = sensitivity(model, target, samples, changed(SensitivityOptions(), options), progress=output.progress)
    output.show(found, as_json, lambda: _print(found), report)


def _print(result: SensitivityResult) -> None:
    found = result.sensitivity
    widest = "in floating point" if found.in_float else "at the widest"
    how = f"each layer alone left {widest}" if found.is_spared else f"each layer alone narrowed, the others {widest}"
    output.line(f"{result.model} for {found.target}: {how}; {found.samples} samples")
    if any(base.value is not None for base in found.bases.values()):
        _table(found, quality_head(found.metric), lambda result: value_text(result, found.metric))
    _table(found, "SQNR of the outputs, dB", lambda result: f"{result.sqnr_db:.1f}")
    for row in found.rows:
        for bits, tried in row.results.items():
            if tried.refused:
                output.line(f"{row.layer.name} at {bits} bits: {tried.refused}")
    output.line(f"{found.evaluated + found.known} settings, {found.known} of them known from before")


def _table(found: Sensitivity, title: str, cell: Callable[[Result], str]) -> None:
    columns = [f"{bits} bits" for bits in found.widths]
    base = ["", "none" if found.is_spared else "no layer", ""]
    rows = [[*base, *(cell(found.bases[bits]) for bits in found.widths)]]
    for row in found.rows:
        cells = [cell(row.results[bits]) if bits in row.results else "" for bits in found.widths]
        rows.append([str(row.layer.index), output.short(row.layer.name), row.layer.operator, *cells])
    output.line()
    output.table(("#", "layer", "operator", *columns), rows, right=("#", *columns), title=title)

"""`tflq sensitivity`: what each layer alone does at each of its widths."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tflq.cli import output
from tflq.cli.calibration_options import CalibrationChoice, calibration
from tflq.cli.common import MODEL_ARGUMENT, reporting
from tflq.cli.precision_options import DEFAULT_SAMPLES, TrialChoice, open_evaluator, read_subject, trials
from tflq.cli.precision_output import accuracy_text, decibels, layer_json, result_json
from tflq.cli.report_options import report_option, write_report
from tflq.cli.target_options import target_settings

if TYPE_CHECKING:
    from tflq.precision.sensitivity import Sensitivity
    from tflq.precision.trial import Result


@click.command("sensitivity")
@MODEL_ARGUMENT
@click.option("-t", "--target", "target_name", required=True, metavar="TARGET", help="A target with a choice of bits.")
@click.option("--spared", is_flag=True, help="The reverse: all layers have the bits, each alone is left at its widest.")
@click.option(
    "--float", "in_float", is_flag=True, help="Floating point takes the place of the widest, for the reference, too."
)
@target_settings
@calibration
@trials
@report_option
@reporting
def command(
    model: str,
    target_name: str,
    spared: bool,
    in_float: bool,
    assignments: tuple[str, ...],
    layers: tuple[str, ...],
    calibration: CalibrationChoice,
    choice: TrialChoice,
    report: Path | None,
    as_json: bool,
) -> None:
    """Measure accuracy and signal-to-noise ratio of MODEL with each layer alone at each of its widths.

    The other layers are at their widest. The ratio compares the outputs with those of the model as it is and needs no
    labels.
    """
    from tflq.precision.sensitivity import sensitivity

    most = choice.span.stop if choice.span else DEFAULT_SAMPLES
    subject = read_subject(model, choice, calibration, most)
    problem = subject.problem(target_name, (assignments, layers), choice.span, choice, in_float)
    with open_evaluator(problem, choice) as evaluator:
        found = sensitivity(evaluator, is_spared=spared)
    if report is not None:
        from tflq.report.precision import sensitivity_page

        write_report(report, sensitivity_page(model, found))
    if as_json:
        output.json_report(_report(model, found))
    else:
        _print(model, found)


def _print(model: str, found: Sensitivity) -> None:
    widest = "in floating point" if found.in_float else "at the widest"
    how = f"each layer alone left {widest}" if found.is_spared else f"each layer alone narrowed, the others {widest}"
    output.line(f"{model} for {found.target}: {how}; {found.samples} samples")
    if any(base.right is not None for base in found.bases.values()):
        _table(found, "accuracy, %", accuracy_text)
    _table(found, "SQNR of the outputs, dB", lambda result: decibels(result.sqnr_db))
    for row in found.rows:
        for bits, result in row.results.items():
            if result.refused:
                output.line(f"{row.layer.name} at {bits} bits: {result.refused}")
    output.line(f"{found.evaluated + found.known} settings, {found.known} of them known from before")


def _table(found: Sensitivity, title: str, cell: Callable[[Result], str]) -> None:
    columns = [f"{bits} bits" for bits in found.widths]
    base = ["", "none" if found.is_spared else "no layer", ""]
    rows = [[*base, *(cell(found.bases[bits]) for bits in found.widths)]]
    for row in found.rows:
        cells = [cell(row.results[bits]) if bits in row.results else "" for bits in found.widths]
        rows.append([str(row.layer.index), row.layer.name, row.layer.operator, *cells])
    output.line()
    output.table(("#", "layer", "operator", *columns), rows, right=("#", *columns), title=title)


def _report(model: str, found: Sensitivity) -> dict[str, output.Json]:
    return {
        "model": model,
        "target": found.target,
        "samples": found.samples,
        "spared": found.is_spared,
        "float": found.in_float,
        "without": {str(bits): result_json(found.bases[bits]) for bits in found.widths},
        "layers": [
            {**layer_json(row.layer), "results": {str(bits): result_json(r) for bits, r in row.results.items()}}
            for row in found.rows
        ],
        "evaluated": found.evaluated,
        "known": found.known,
    }

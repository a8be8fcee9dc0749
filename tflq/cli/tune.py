"""`tflq tune`: an alias of `tflq search --backward`, with its original options."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from tflq.api.backward import DEFAULT_SAMPLES, BackwardOptions
from tflq.api.options import CalibrationOptions, SampleOptions, TargetOptions
from tflq.cli import output
from tflq.cli.help import SectionedCommand
from tflq.cli.options import MODEL_ARGUMENT, calibration_options, reporting, sample_options, target_options
from tflq.cli.outputs import writing
from tflq.cli.search import drop_option, search_backward, template_option


@click.command("tune", cls=SectionedCommand)
@MODEL_ARGUMENT
@target_options("Target with promotable layers (default: aipu).")
@drop_option
@calibration_options
@template_option
@sample_options(DEFAULT_SAMPLES)
@reporting
@writing
def command(
    model: str,
    target: TargetOptions,
    samples: SampleOptions,
    calibration: CalibrationOptions,
    drop: float | None,
    template_path: Path | None,
) -> int:
    """Find the last layer of MODEL from which on all layers need more bits: an alias of `tflq search --backward`.

    It first tries 16 bits for the layers from there to the end, then floating point, which target files cannot store;
    this second stage shows the remaining distance to the 16-bit result. Exit status 1 if no setting is accurate enough.
    """
    target = replace(target, name=target.name or "aipu")
    options = BackwardOptions(samples.data, samples.take, calibration=calibration, drop=drop)
    status = search_backward(model, target, replace(samples, data=None, take=None), options, template_path)
    output.warn("tune is an alias of `tflq search --backward`")
    return status

"""`tflq convert`: a model's files for a target, or for every target."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from tflq.api.convert import DEFAULT_SAMPLES, ConvertAllResult, ConvertOptions, ConvertResult, convert, convert_all
from tflq.api.options import CalibrationOptions, SampleOptions, TargetOptions
from tflq.api.target import ALL, merge_settings
from tflq.cli import output
from tflq.cli.help import SectionedCommand
from tflq.cli.options import (
    MODEL_ARGUMENT,
    calibration_options,
    folder_output,
    output_option,
    sample_options,
    target_options,
    with_page,
)


@click.command("convert", cls=SectionedCommand)
@MODEL_ARGUMENT
@target_options("`tflq targets` lists them; `all` is every one.", required=True)
@calibration_options
@folder_output
@output_option(
    "--write-template",
    "template_path",
    metavar="FILE",
    help="Write the settings, ranges and similarity of each layer, to edit and give back with --template.",
)
@output_option(
    "--write-settings",
    "settings_path",
    metavar="FILE",
    help="Write the settings as the vendor's tool reads them: opt.cfg of Compass, for the float IR that is written.",
)
@click.option(
    "--engine",
    type=click.Choice(["auto"]),
    help="Choose NE16 or the cluster for each layer by the cycles of `tflq estimate`, and say what that gains.",
)
@click.option(
    "--recover",
    is_flag=True,
    help="First recover the weights (docs/guides/recover.md) with the samples of --data, --input or else --calibrate.",
)
@click.option("--trace-passes", is_flag=True, help="Print the lines of the graph that each pass of the target changes.")
@click.option(
    "--pass",
    "passes",
    metavar="NAME",
    multiple=True,
    help="Pass that --trace-passes prints (default: each one that changes something); may be repeated.",
)
@sample_options(DEFAULT_SAMPLES)
@with_page
def command(
    model: str,
    target: TargetOptions,
    folder: Path,
    samples: SampleOptions,
    calibration: CalibrationOptions,
    template_path: Path | None,
    settings_path: Path | None,
    engine: Literal["auto"] | None,
    recover: bool,
    trace_passes: bool,
    passes: tuple[str, ...],
) -> int:
    """Quantize MODEL for a target and write its files into a folder: all of them, or none after an error.

    Each layer's result is compared with floating point on the samples: those of --input, else the first of
    --calibrate, else random ones. The .tflite among the files is run by TFLite on them, too, and compared with the
    target's own arithmetic; where neither ai-edge-litert nor tensorflow is installed this is omitted.

    `--target all` writes a folder for each target, with its defaults, and compares them in one table, by accuracy where
    --data names labeled samples; the status is 1 if a target refuses the model.
    """
    found: ConvertResult | ConvertAllResult
    options = ConvertOptions(calibration, recover, engine, trace_passes, passes)
    if passes and not trace_passes:
        raise click.UsageError("--pass is for --trace-passes")
    if target.name == ALL:
        if trace_passes:
            raise click.UsageError("--trace-passes is for one target")
        if recover:
            raise click.UsageError("--recover is for one target; its weights are no better for others")
        _refuse_for_all(target, calibration, template_path or settings_path)
        found = convert_all(model, folder, samples, options, progress=output.progress)
    else:
        found = convert(model, target, folder, samples, options, progress=output.progress)
        if template_path is not None:
            found.write_template(template_path)
        if settings_path is not None:
            found.write_settings(settings_path)
    return output.show(found, *(("passes",) if trace_passes else ()))


def _refuse_for_all(target: TargetOptions, calibration: CalibrationOptions, template_path: Path | None) -> None:
    wanted = merge_settings(target, calibration)
    if wanted.settings or wanted.layers:
        raise click.UsageError("--set and --layer are settings of one target; --target all takes each one's defaults")
    if template_path is not None:
        raise click.UsageError("--write-template and --write-settings are for one target")

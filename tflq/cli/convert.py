"""`tflq convert`: write the files of a model for a target, or for every target."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Literal

import click

from tflq.api.conversion import ConvertAllResult, ConvertResult
from tflq.api.convert import DEFAULT_SAMPLES, ConvertOptions, convert, convert_all
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
from tflq.cli.record_options import option

_option = partial(option, ConvertOptions)


@click.command("convert", cls=SectionedCommand)
@MODEL_ARGUMENT
@target_options("Target, as listed by `tflq targets`; `all` for every target.", required=True)
@calibration_options
@folder_output(convert)
@output_option(
    "--write-template",
    "template_path",
    metavar="FILE",
    help="Output file for the settings, ranges and similarity of each layer, as editable input for --template.",
)
@output_option(
    "--write-settings",
    "settings_path",
    metavar="FILE",
    help="Output file for the settings in the format of the vendor's tool: opt.cfg of Compass, for its float IR.",
)
@_option("engine")
@_option("recover")
@_option("trace_passes")
@_option("passes", "--pass", metavar="NAME")
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

    Each layer's result is compared with floating point on the samples of --input, else the first samples of
    --calibrate, else random samples. The emitted .tflite also runs in TFLite on these samples and is compared with the
    target's own arithmetic, if ai-edge-litert or tensorflow is installed.

    `--target all` writes a folder for each target, with its defaults, and compares the targets in one table, by
    accuracy if --data names labeled samples. Exit status 1 if a target refuses the model.
    """
    result: ConvertResult | ConvertAllResult
    options = ConvertOptions(calibration, recover, engine, trace_passes, passes)
    if passes and not trace_passes:
        raise click.UsageError("--pass needs --trace-passes")
    if target.name == ALL:
        if trace_passes:
            raise click.UsageError("--trace-passes needs a single target")
        if recover:
            raise click.UsageError("--recover needs a single target, which the weights are recovered for")
        _refuse_for_all(target, calibration, template_path or settings_path)
        result = convert_all(model, folder, samples, options, progress=output.progress)
    else:
        result = convert(model, target, folder, samples, options, progress=output.progress)
        if template_path is not None:
            result.write_template(template_path)
        if settings_path is not None:
            result.write_settings(settings_path)
    return output.show(result, *(("passes",) if trace_passes else ()))


def _refuse_for_all(target: TargetOptions, calibration: CalibrationOptions, template_path: Path | None) -> None:
    wanted = merge_settings(target, calibration)
    if wanted.settings or wanted.layers:
        raise click.UsageError("--set and --layer need a single target; --target all uses the defaults of each")
    if template_path is not None:
        raise click.UsageError("--write-template and --write-settings need a single target")

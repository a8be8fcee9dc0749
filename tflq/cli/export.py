"""`tflq export`: write test vectors of each layer, or the network as a C99 program."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from tflq.api.export import ExportOptions, export
from tflq.api.options import SampleOptions, TargetOptions, replace_options
from tflq.cli import output
from tflq.cli.help import SectionedCommand
from tflq.cli.options import (
    MODEL_ARGUMENT,
    calibration_options,
    folder_output,
    reporting,
    sample_options,
    target_options,
)
from tflq.cli.outputs import writing
from tflq.cli.record_options import help_of, option

_option = partial(option, ExportOptions)


@click.command("export", cls=SectionedCommand)
@MODEL_ARGUMENT
@_option("vectors", default=None, show_default=False)
@_option("program")
@target_options(
    help_of(ExportOptions, "target"),
    layer_metavar="PATTERN",
    layer_help="Layer to export: a number, a name or a glob of names, or an operator. PATTERN:KEY=VALUE is a setting "
    "of the target instead. Repeatable.",
)
@folder_output(export)
@calibration_options
@_option("runtime")
@_option("state")
@sample_options(1)
@reporting
@writing
def command(model: str, folder: Path, samples: SampleOptions, target: TargetOptions, **options: object) -> int:
    """Write test vectors of each layer of MODEL, or MODEL as a program in C.

    --vectors, for firmware and RTL test benches: inputs and expected outputs of the samples, weights and other
    constants, and the integers that the arithmetic derived: multipliers, shifts, folded biases, tables. index.json
    lists shapes, types and scales.

    --program c99: source that computes every tensor bit for bit, in TFLite's or any target's integers, with the samples
    and their expected output. All files are written, or none after an error.
    """
    if (options["vectors"] is None) == (options["program"] is None):
        raise click.UsageError("choose one of --vectors c|hex|npz and --program c99")
    options = {name: value for name, value in options.items() if value is not None}
    settings = tuple(text for text in target.layers if "=" in text)
    if target.name is None and (target.settings or settings):
        raise click.UsageError("--set and --layer PATTERN:KEY=VALUE need a target; add --target")
    options |= {
        "target": replace(target, layers=settings),
        "layers": tuple(text for text in target.layers if "=" not in text),
    }
    return output.show(export(model, folder, samples, replace_options(ExportOptions(), options)))

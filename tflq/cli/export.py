"""`tflq export`: test vectors of each layer, or the network as a C99 program."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from tflq.api.export import ExportOptions, export
from tflq.api.options import SampleOptions, TargetOptions, replace_options
from tflq.cli import output
from tflq.cli.help import SectionedCommand
from tflq.cli.options import (
    MODEL_ARGUMENT,
    RUNTIME_OPTION,
    STATE_OPTION,
    calibration_options,
    folder_output,
    reporting,
    sample_options,
    target_options,
)
from tflq.cli.outputs import writing


@click.command("export", cls=SectionedCommand)
@MODEL_ARGUMENT
@click.option(
    "--vectors",
    type=click.Choice(("c", "hex", "npz")),
    help="c: arrays that a C99 compiler takes; hex: one file an array for $readmemh; npz: one archive a layer.",
)
@click.option(
    "--program",
    type=click.Choice(("c99",)),
    help="c99: the whole network as one readable C program that computes the same bits.",
)
@target_options(
    "Of this target's integers; TFLite's without it.",
    layer_metavar="PATTERN",
    layer_help="Only these layers: a number, a name or a glob of names, or an operator. PATTERN:KEY=VALUE is a setting "
    "of the target instead. Repeat it for more.",
)
@folder_output
@calibration_options
@RUNTIME_OPTION
@STATE_OPTION
@sample_options(1)
@reporting
@writing
def command(model: str, folder: Path, samples: SampleOptions, target: TargetOptions, **options: object) -> int:
    """Write what each layer of MODEL reads, holds and must write, or MODEL as a program in C.

    --vectors, for firmware and RTL test benches: inputs and expected outputs of the samples, weights and other
    constants, and the integers that the arithmetic decided: multipliers, shifts, folded biases, tables. index.json
    says shapes, types and scales.

    --program c99: source that computes every tensor bit for bit, in TFLite's or any target's integers, with the
    samples and what it must write for them. All files, or none after an error.
    """
    if (options["vectors"] is None) == (options["program"] is None):
        raise click.UsageError("choose one of --vectors c|hex|npz and --program c99")
    options = {name: value for name, value in options.items() if value is not None}
    settings = tuple(text for text in target.layers if "=" in text)
    if target.name is None and (target.settings or settings):
        raise click.UsageError("--set and --layer PATTERN:KEY=VALUE are settings of a target; add --target")
    options |= {
        "target": replace(target, layers=settings),
        "layers": tuple(text for text in target.layers if "=" not in text),
    }
    return output.show(export(model, folder, samples, replace_options(ExportOptions(), options)))

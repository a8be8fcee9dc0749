"""`tflq export`: test vectors of each layer, or the network as a C99 program."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tflq.api.export import ExportOptions, ExportResult, ProgramResult, export
from tflq.api.options import SampleOptions, TargetOptions, changed
from tflq.cli import output
from tflq.cli.help import SectionedCommand
from tflq.cli.options import (
    MODEL_ARGUMENT,
    STATE_OPTION,
    calibration_options,
    folder_output,
    reporting,
    sample_options,
    target_options,
)
from tflq.cli.outputs import writing

if TYPE_CHECKING:
    from tflq.emit.vectors import LayerVectors


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
@STATE_OPTION
@sample_options(1)
@reporting
@writing
def command(
    model: str, folder: Path, samples: SampleOptions, target: TargetOptions, as_json: bool, **options: object
) -> None:
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
    found = export(model, folder, samples, changed(ExportOptions(), options))
    output.show(found, as_json, lambda: _print(found))


def _print(found: ExportResult | ProgramResult) -> None:
    if isinstance(found, ProgramResult):
        _print_program(found)
        return
    rows = [
        (str(v.index), v.operator, output.short(v.name), v.arithmetic, str(len(v.vectors)), output.size(_bytes_of(v)))
        for v in found.layers
    ]
    output.table(("#", "operator", "layer", "arithmetic", "arrays", "size"), rows, right=("#", "arrays", "size"))
    total = output.size(sum(map(len, found.files.values())))
    output.line(f"{found.folder}: {len(found.files)} files, {total}, {found.facts['samples']} samples")


def _print_program(found: ProgramResult) -> None:
    rows = [(name, output.size(size)) for name, size in found.sizes.items()]
    output.table(("file", "size"), rows, right=("size",))
    for name, why in found.program.left_out.items():
        output.line(f"left to the caller: {name}: {why}")
    output.line(
        f"{found.folder}: {len(found.program.tensors)} tensors, an arena of "
        f"{output.size(found.program.arena_bytes)}, {found.samples} samples. Build and check it there:"
    )
    output.line("    cc -std=c99 -O2 -o network network.c main.c && ./network < samples.bin | cmp - expected.bin")


def _bytes_of(layer: LayerVectors) -> int:
    return sum(vector.values.nbytes for vector in layer.vectors)

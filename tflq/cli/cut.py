"""`tflq cut`: a part of a model as its own .tflite."""

from __future__ import annotations

from pathlib import Path

import click

from tflq.api.written_model import cut
from tflq.cli import output
from tflq.cli.options import MODEL_ARGUMENT, reporting, tflite_output
from tflq.cli.outputs import writing


@click.command("cut")
@MODEL_ARGUMENT
@click.option(
    "--from",
    "sources",
    multiple=True,
    metavar="TENSOR",
    help="A tensor that becomes an input: its name or index, or a layer as --layer names it. Repeat it for more; the "
    "model's inputs without it.",
)
@click.option(
    "--to",
    "targets",
    multiple=True,
    metavar="TENSOR",
    help="A tensor that becomes an output. Repeat it for more; the model's outputs where none is given.",
)
@click.option(
    "--settled",
    is_flag=True,
    help="First fold what is known before the run, shapes above all, as every target sees the model.",
)
@tflite_output
@reporting
@writing
def command(model: str, sources: tuple[str, ...], targets: tuple[str, ...], settled: bool, path: Path) -> int:
    """Write the operators of MODEL between some tensors and others as a .tflite of their own.

    `tflq inspect --tensors` lists names and indices.
    """
    return output.show(cut(model, sources, targets, path, settled=settled))

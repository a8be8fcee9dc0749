"""`tflq cut`: write a part of a model as a separate .tflite."""

from __future__ import annotations

from pathlib import Path

import click

from tflq.api.written_model import cut
from tflq.cli import output
from tflq.cli.options import MODEL_ARGUMENT, reporting, tflite_output
from tflq.cli.outputs import writing
from tflq.cli.record_options import option


@click.command("cut")
@MODEL_ARGUMENT
@option(cut, "inputs", "--from", metavar="TENSOR")
@option(cut, "outputs", "--to", metavar="TENSOR")
@option(cut, "settled")
@tflite_output
@reporting
@writing
def command(model: str, inputs: tuple[str, ...], outputs: tuple[str, ...], settled: bool, path: Path) -> int:
    """Write the operators of MODEL from some tensors to later ones as a separate .tflite.

    `tflq inspect --tensors` lists names and indices.
    """
    return output.show(cut(model, inputs, outputs, path, settled=settled))

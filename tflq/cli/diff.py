"""`tflq diff`: list the differences between two models."""

from __future__ import annotations

import click

from tflq.api.diff import diff
from tflq.cli import output
from tflq.cli.options import reporting


@click.command("diff")
@click.argument("first", metavar="A", type=click.Path())
@click.argument("second", metavar="B", type=click.Path())
@reporting
def command(first: str, second: str) -> int:
    """List the differences between the models A and B: operators, attributes, types, shapes, quantization, constants.

    No model is run; `tflq compare` shows the effect of the differences. Exit status 1 if the models differ.
    """
    return output.show(diff(first, second))

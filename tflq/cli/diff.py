"""`tflq diff`: what differs between two models."""

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
    """List what differs between the models A and B: operators, attributes, types, shapes, quantization, constants.

    Nothing is run; `tflq compare` says what the differences do. Exit status 1 if anything differs.
    """
    return output.show(diff(first, second))

"""`tflq runtimes`: the runtimes of a .tflite file."""

from __future__ import annotations

import click

from tflq.api.runtimes import runtimes
from tflq.cli import output
from tflq.cli.options import reporting


@click.command("runtimes")
@click.argument("names", nargs=-1, metavar="[RUNTIME]...")
@reporting
def command(names: tuple[str, ...]) -> int:
    """List the runtimes of a .tflite file and, for each, the rules that differ from TFLite's reference kernels."""
    return output.show(runtimes(*names))

"""`tflq targets`: which there are, and what can be set."""

from __future__ import annotations

import click

from tflq.api.targets import targets
from tflq.cli import completion, output
from tflq.cli.options import reporting


@click.command("targets")
@click.argument("names", nargs=-1, metavar="[TARGET]...", shell_complete=completion.targets)
@reporting
def command(names: tuple[str, ...]) -> int:
    """List the targets and, for those named (all where none is), the keys that --set and --layer take."""
    return output.show(targets(*names))

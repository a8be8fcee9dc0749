"""`tflq targets`: list the targets and their settings."""

from __future__ import annotations

import click

from tflq.api.targets import targets
from tflq.cli import completion, output
from tflq.cli.options import reporting


@click.command("targets")
@click.argument("names", nargs=-1, metavar="[TARGET]...", shell_complete=completion.targets)
@reporting
def command(names: tuple[str, ...]) -> int:
    """List the named targets (default: all) with the keys of --set and --layer."""
    return output.show(targets(*names))

"""`tflq models`: the MLPerf Tiny reference models."""

from __future__ import annotations

from pathlib import Path

import click

from tflq.api.mlperf_tiny import fetch_models, models
from tflq.cli import output
from tflq.cli.help import HelpfulGroup
from tflq.cli.options import path_option, reporting


@click.group("models", cls=HelpfulGroup, no_args_is_help=False)
def command() -> None:
    """Get the MLPerf Tiny reference models (mlcommons/tiny at a pinned commit, checksums pinned)."""


@command.command("fetch")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@path_option(
    "--dir",
    "folder",
    default=Path("models"),
    show_default=True,
    help="Folder to put them into; it is made where it is missing.",
)
@click.option("--base-url", metavar="URL", help="Another place with the same folders: a mirror.")
@reporting
def fetch_command(names: tuple[str, ...], folder: Path, base_url: str | None) -> int:
    """Put the models named into a folder; all of them where none is named.

    A file that is there already is kept if its checksum is right, and refused if it is wrong. Where the environment
    variable TFLQ_DATA names a folder with right copies (in it, or in its "models"), they are used, not the network.
    """
    return output.show(fetch_models(*names, folder=folder, base_url=base_url, progress=output.progress))


@command.command("list")
@reporting
def list_command() -> int:
    """List the models by name."""
    return output.show(models())

"""`tflq models`: the MLPerf Tiny reference models."""

from __future__ import annotations

from pathlib import Path

import click

from tflq.api.mlperf_tiny import fetch_models, models
from tflq.cli import output
from tflq.cli.help import HelpfulGroup
from tflq.cli.options import reporting
from tflq.cli.record_options import option


@click.group("models", cls=HelpfulGroup, no_args_is_help=False)
def command() -> None:
    """Get the MLPerf Tiny reference models (mlcommons/tiny at a pinned commit, checksums pinned)."""


@command.command("fetch")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@option(fetch_models, "folder", "--dir", type=click.Path(path_type=Path))
@option(fetch_models, "base_url", metavar="URL")
@reporting
def fetch_command(names: tuple[str, ...], folder: Path, base_url: str | None) -> int:
    """Put reference models into a folder (default: all models).

    An existing file is kept if its checksum matches, and refused if it does not. If the environment variable TFLQ_DATA
    names a folder with valid copies (in it, or in its "models"), these are used, and the network is not.
    """
    return output.show(fetch_models(*names, folder=folder, base_url=base_url, progress=output.progress))


@command.command("list")
@reporting
def list_command() -> int:
    """List the models by name."""
    return output.show(models())

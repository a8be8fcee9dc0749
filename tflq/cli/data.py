"""`tflq data`: MLPerf Tiny's data sets."""

from __future__ import annotations

from pathlib import Path

import click

from tflq.api.mlperf_tiny import FOLDER, build_data, data_sets, fetch_data
from tflq.cli import completion, output
from tflq.cli.help import HelpfulGroup
from tflq.cli.options import path_option, reporting

_FOLDER = path_option(
    "--dir",
    "folder",
    default=Path(FOLDER),
    show_default=True,
    help="Folder that holds a folder for each task; it is made where it is missing.",
)
_BASE_URL = click.option("--base-url", metavar="URL", help="A mirror of mlcommons/tiny's folder benchmark.")


@click.group("data", cls=HelpfulGroup, no_args_is_help=False)
def command() -> None:
    """Get MLPerf Tiny's data sets: what is published, and the rest made of the original archives."""


@command.command("list")
@reporting
def list_command() -> int:
    """List the data sets: what `fetch` gets, and of what `build` makes the rest."""
    return output.show(data_sets())


@command.command("fetch")
@click.argument("tasks", nargs=-1, metavar="[TASK]...", shell_complete=completion.tasks)
@_FOLDER
@_BASE_URL
@click.option("--clips-url", metavar="URL", help="A mirror of EEMBC's folder datasets, for the samples of kws01.")
@reporting
def fetch_command(tasks: tuple[str, ...], folder: Path, base_url: str | None, clips_url: str | None) -> int:
    """Put what is published of each TASK (all, where none is named) into a folder; checksums are pinned.

    Labels of all tasks but sww01, the samples of kws01, the stream of sww01 with its truth. A file that is there
    already is kept if its checksum is right, and refused if it is wrong. Where the environment variable TFLQ_DATA names
    a folder with right copies (in its "datasets"), they are used, not the network.
    """
    return output.show(
        fetch_data(*tasks, folder=folder, base_url=base_url, clips_url=clips_url, progress=output.progress)
    )


@command.command("build")
@click.argument("task", metavar="TASK", shell_complete=completion.tasks)
@click.option(
    "--from",
    "sources",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="An original archive (.zip, .tar, .tar.gz) or its folder; `tflq data list` says which. Repeat it for more.",
)
@_FOLDER
@_BASE_URL
@reporting
def build_command(task: str, sources: tuple[Path, ...], folder: Path, base_url: str | None) -> int:
    """Make the samples of TASK of the archives that you have, as mlcommons' own scripts do.

    Source: docs/guides/mlperf_tiny.md.

    The labels in the task's folder say which samples; where there are none, the published ones are fetched.
    """
    return output.show(build_data(task, *sources, folder=folder, base_url=base_url))

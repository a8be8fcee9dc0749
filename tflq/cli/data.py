"""`tflq data`: MLPerf Tiny's data sets."""

from __future__ import annotations

from pathlib import Path

import click

from tflq.api.mlperf_tiny import build_data, data_sets, fetch_data
from tflq.cli import completion, output
from tflq.cli.help import HelpfulGroup
from tflq.cli.options import reporting
from tflq.cli.record_options import option

_FOLDER = option(fetch_data, "folder", "--dir", type=click.Path(path_type=Path))
_BASE_URL = option(fetch_data, "base_url", metavar="URL")


@click.group("data", cls=HelpfulGroup, no_args_is_help=False)
def command() -> None:
    """Get MLPerf Tiny's data sets: published files, and samples built from the original archives."""


@command.command("list")
@reporting
def list_command() -> int:
    """List the data sets: the files that `fetch` gets, and the originals that `build` needs."""
    return output.show(data_sets())


@command.command("fetch")
@click.argument("tasks", nargs=-1, metavar="[TASK]...", shell_complete=completion.tasks)
@_FOLDER
@_BASE_URL
@option(fetch_data, "clips_url", metavar="URL")
@reporting
def fetch_command(tasks: tuple[str, ...], folder: Path, base_url: str | None, clips_url: str | None) -> int:
    """Put the published files of each TASK (default: all) into one folder per task; checksums are pinned.

    These are the labels of all tasks except sww01, the samples of kws01, and the stream of sww01 with its truth. An
    existing file is kept if its checksum matches, and refused if it does not. If the environment variable TFLQ_DATA
    names a folder with valid copies (in its "datasets"), these are used, and the network is not.
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
    help="Original archive (.zip, .tar, .tar.gz) or its folder, as listed by `tflq data list`. Repeatable.",
)
@_FOLDER
@_BASE_URL
@reporting
def build_command(task: str, sources: tuple[Path, ...], folder: Path, base_url: str | None) -> int:
    """Build the samples of TASK from the original archives, as MLCommons' scripts do.

    Source: docs/guides/mlperf_tiny.md.

    The labels in the task's folder select the samples; if they are missing, the published labels are fetched.
    """
    return output.show(build_data(task, *sources, folder=folder, base_url=base_url))

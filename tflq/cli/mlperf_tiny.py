"""`tflq models` and `tflq data`: MLPerf Tiny's reference models and data sets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from tflq.api.mlperf_tiny import FOLDER, build_data, data_sets, fetch_data, fetch_models, models
from tflq.cli import completion, output
from tflq.cli.help import HelpfulGroup
from tflq.cli.options import path_option, reporting


def _folder_option(default: str, what: str) -> Callable[[Callable[..., object]], Callable[..., object]]:
    said = f"{what}; it is made where it is missing."
    return path_option("--dir", "folder", default=Path(default), show_default=True, help=said)


@click.group("models", cls=HelpfulGroup, no_args_is_help=False)
def models_command() -> None:
    """Get the MLPerf Tiny reference models (mlcommons/tiny at a pinned commit, checksums pinned)."""


@models_command.command("fetch")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@_folder_option("models", "Folder to put them into")
@click.option("--base-url", metavar="URL", help="Another place with the same folders: a mirror.")
@reporting
def fetch_models_command(names: tuple[str, ...], folder: Path, base_url: str | None, as_json: bool) -> None:
    """Put the models named into a folder; all of them where none is named.

    A file that is there already is kept if its checksum is right, and refused if it is wrong. Where the environment
    variable TFLQ_DATA names a folder with right copies (in it, or in its "models"), they are used, not the network.
    """
    found = fetch_models(*names, folder=folder, base_url=base_url, progress=output.progress)
    lines = [
        f"{folder / model.name}: {outcome}, {output.size(model.size_bytes or 0)}, checksum right"
        for model, outcome in found.outcomes
    ]
    output.show(found, as_json, lambda: output.lines(lines))


@models_command.command("list")
@reporting
def list_models_command(as_json: bool) -> None:
    """List the models by name."""
    found = models()
    rows = [(m.name, m.task.replace("_", " "), output.size(m.size_bytes or 0)) for m in found.models]
    output.show(found, as_json, lambda: output.table(("name", "task", "size"), rows, right=("size",)))


_FOLDER = _folder_option(FOLDER, "Folder that holds a folder for each task")
_BASE_URL = click.option("--base-url", metavar="URL", help="A mirror of mlcommons/tiny's folder benchmark.")


@click.group("data", cls=HelpfulGroup, no_args_is_help=False)
def data_command() -> None:
    """Get MLPerf Tiny's data sets: what is published, and the rest made of the original archives."""


@data_command.command("list")
@reporting
def list_command(as_json: bool) -> None:
    """List the data sets: what `fetch` gets, and of what `build` makes the rest."""
    found = data_sets()
    rows = [
        (str(row["task"]), ", ".join(map(str, row["published"])), str(row["made_of"]), str(row["from"]))  # type: ignore[arg-type]
        for row in found.rows()
    ]
    output.show(found, as_json, lambda: output.table(("task", "fetch", "build, of", "which is"), rows))


@data_command.command("fetch")
@click.argument("tasks", nargs=-1, metavar="[TASK]...", shell_complete=completion.tasks)
@_FOLDER
@_BASE_URL
@click.option("--clips-url", metavar="URL", help="A mirror of EEMBC's folder datasets, for the samples of kws01.")
@reporting
def fetch_command(
    tasks: tuple[str, ...], folder: Path, base_url: str | None, clips_url: str | None, as_json: bool
) -> None:
    """Put what is published of each TASK (all, where none is named) into a folder; checksums are pinned.

    Labels of all tasks but sww01, the samples of kws01, the stream of sww01 with its truth. A file that is there
    already is kept if its checksum is right, and refused if it is wrong. Where the environment variable TFLQ_DATA names
    a folder with right copies (in its "datasets"), they are used, not the network.
    """
    found = fetch_data(*tasks, folder=folder, base_url=base_url, clips_url=clips_url, progress=output.progress)
    lines = [f"{path}: {how}, checksum right" for path, how, _ in found.outcomes]
    output.show(found, as_json, lambda: output.lines(lines))


@data_command.command("build")
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
def build_command(task: str, sources: tuple[Path, ...], folder: Path, base_url: str | None, as_json: bool) -> None:
    """Make the samples of TASK of the archives that you have, as mlcommons' own scripts do (docs/mlperf_tiny.md).

    The labels in the task's folder say which samples; where there are none, the published ones are fetched.
    """
    found = build_data(task, *sources, folder=folder, base_url=base_url)
    text = f"{found.folder}: {len(found.files)} files, {output.size(found.size_bytes)}"
    output.show(found, as_json, lambda: output.line(text))

"""`tflq models`: the MLPerf Tiny reference models."""

from __future__ import annotations

from pathlib import Path

import click

from tflq.cli import output
from tflq.cli.common import reporting
from tflq.cli.groups import HelpfulGroup


@click.group("models", cls=HelpfulGroup, no_args_is_help=False)
def command() -> None:
    """Get the MLPerf Tiny reference models (mlcommons/tiny at a pinned commit, checksums pinned)."""


@command.command("fetch")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path),
    default=Path("models"),
    show_default=True,
    help="Folder to put them into; it is made where it is missing.",
)
@click.option("--base-url", metavar="URL", help="Another place with the same folders: a mirror.")
@reporting
def fetch_command(names: tuple[str, ...], folder: Path, base_url: str | None, as_json: bool) -> None:
    """Put the models named into a folder; all of them where none is named.

    A file that is there already is kept if its checksum is right, and refused if it is wrong. Where the environment
    variable TFLQ_DATA names a folder with right copies (in it, or in its "models"), they are used, not the network.
    """
    from tflq.benchmarks.fetch import fetch
    from tflq.benchmarks.reference_models import BASE_URL, reference_models

    models = reference_models(names)
    outcomes: list[output.Json] = []
    with output.Bar("fetch", sum(model.size_bytes for model in models)) as bar:
        for model in models:
            outcome = fetch(model, folder, base_url or BASE_URL, bar.advance)
            path = str(folder / model.name)
            outcomes.append({"path": path, "outcome": outcome, "size_bytes": model.size_bytes, "sha256": model.sha256})
            if not as_json:
                output.line(f"{path}: {outcome}, {output.size(model.size_bytes)}, checksum right")
    if as_json:
        output.json_report({"models": outcomes})


@command.command("list")
@reporting
def list_command(as_json: bool) -> None:
    """List the models by name."""
    from tflq.benchmarks.reference_models import COMMIT, REFERENCE_MODELS

    if as_json:
        listed: list[output.Json] = [
            {"name": m.name, "task": m.task, "size_bytes": m.size_bytes, "sha256": m.sha256} for m in REFERENCE_MODELS
        ]
        output.json_report({"commit": COMMIT, "models": listed})
        return
    output.table(
        ("name", "task", "size"),
        [(m.name, m.task.replace("_", " "), output.size(m.size_bytes)) for m in REFERENCE_MODELS],
        right=("size",),
    )

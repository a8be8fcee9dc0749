"""The option --output of `tflq demo`: files of the demo in a folder."""

from __future__ import annotations

from pathlib import Path

import click

from tflq.api.demo import demo
from tflq.api.demo_files import write_demo
from tflq.cli import output


def write_files(folder: Path) -> None:
    """Write the files of the demo into an empty folder, and print their names.

    Raises:
        UsageError: The folder contains files.
    """
    if folder.is_dir() and any(folder.iterdir()):
        raise click.UsageError(f"--output {folder}: is not empty; name an empty folder")
    output.line(f"{folder}: {', '.join(write_demo(demo(), folder))}")


demo_output = click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Output folder for the model (digits.tflite), its test images (images.npy) and the labeled images (digits/); "
    "the demo itself does not run.",
)
"""Adds --output to `tflq demo`."""

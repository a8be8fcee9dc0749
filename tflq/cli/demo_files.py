"""The option --output of `tflq demo`: it writes the files of the demo and ends the command."""

from __future__ import annotations

from pathlib import Path

import click

from tflq.api.demo import demo
from tflq.api.demo_files import write_demo
from tflq.cli import output


def _write(ctx: click.Context, _option: click.Parameter, folder: Path | None) -> None:
    if folder is None or ctx.resilient_parsing:
        return
    if folder.is_dir() and any(folder.iterdir()):
        raise click.UsageError(f"--output {folder}: is not empty; name an empty folder", ctx)
    output.line(f"{folder}: {', '.join(write_demo(demo(), folder))}")
    ctx.exit()


demo_output = click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    expose_value=False,
    callback=_write,
    metavar="DIR",
    help="Write the model (digits.tflite), its test images (images.npy) and the labeled images (digits/) into this "
    "folder, and run nothing.",
)
"""Adds --output to `tflq demo`."""

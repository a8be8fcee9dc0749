"""Outputs of commands: an existing output is kept unless --force is set; an input is never overwritten."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from tflq.cli.in_force import keep, option_value
from tflq.files import named_paths

_Function = TypeVar("_Function", bound=Callable[..., Any])  # click's own type for decorated functions


class OutputPath(click.Path):
    """The type of an option that names a file to write."""


class OutputFolder(OutputPath):
    """The type of an option that names a folder for several files."""


def writing(function: _Function) -> Callable[..., Any]:
    """Add --force, and refuse to overwrite a file, an input, or a non-empty folder, before the work starts.

    Outputs are the options with type `OutputPath`.
    """

    @wraps(function)
    def command(*arguments: object, **given: object) -> object:
        require_free(click.get_current_context())
        return function(*arguments, **given)

    return click.option(
        "--force",
        is_flag=True,
        expose_value=False,
        callback=keep,
        help="Overwrite existing outputs, and write into non-empty folders.",
    )(command)


def require_free(ctx: click.Context) -> None:
    """Check the outputs of a command.

    Raises:
        click.UsageError: An output exists and --force is not set, or an output is an input.
    """
    kinds = {p.name: p for p in ctx.command.params}
    values = {**ctx.params, "report": option_value("report")}
    outputs = {name: p for name, p in kinds.items() if isinstance(p.type, OutputPath) and values.get(str(name))}
    inputs = [
        path
        for name, value in ctx.params.items()
        if name not in outputs
        for path in named_paths(value)
        if path.is_file()
    ]
    for name, option in outputs.items():
        path, called = Path(str(values[str(name)])), option.opts[-1]
        read = next((p for p in inputs if _is_written(p, path)), None)
        if read is not None:
            raise click.UsageError(f"{called} {path}: the input {read} would be overwritten; name another output", ctx)
        if option_value("force") or not path.exists():
            continue
        if not isinstance(option.type, OutputFolder):
            raise click.UsageError(f"{called} {path}: exists; name another file, or overwrite it with --force", ctx)
        items = sorted(item.name for item in path.iterdir()) if path.is_dir() else []
        if items:
            more = f" and {len(items) - 1} more" if len(items) > 1 else ""
            raise click.UsageError(
                f"{called} {path}: the folder is not empty ({items[0]}{more}); name another one, or write into it with "
                "--force",
                ctx,
            )


def _is_written(read: Path, output: Path) -> bool:
    """Return whether an output is an input file, or the folder of an input file."""
    return output.exists() and (read.samefile(output) or read.resolve().parent == output.resolve())

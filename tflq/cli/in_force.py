"""Options that put something in force until a command ends: limits, a backend, kernels, wide tables."""

from __future__ import annotations

import click


def _apply_limits(ctx: click.Context, _option: click.Parameter, words: tuple[str, ...]) -> None:
    """Put limits in force until the command ends."""
    from tflq.limits import exported, from_words

    if words:
        ctx.with_resource(exported(from_words(words)))


LIMIT_OPTION = click.option(
    "--limit",
    multiple=True,
    metavar="NAME=N",
    is_eager=True,
    expose_value=False,
    callback=_apply_limits,
    help="Raise or lower a limit on what a model may ask for, as memory=8G: bytes, memory, tensors, operators, "
    "subgraphs, depth, expansion, subgraph-runs (docs/guides/limits.md). Repeat it for several.",
)


def _apply_backend(ctx: click.Context, _option: click.Parameter, name: str | None) -> None:
    """Put a backend in force until the command ends."""
    if name is not None:
        from tflq.backends import backend

        ctx.with_resource(backend(name))


BACKEND_OPTION = click.option(
    "--backend",
    type=click.Choice(("numpy", "c")),
    expose_value=False,
    callback=_apply_backend,
    help="c: layers of 8 bits run in C, compiled once by this machine's cc; results are the same "
    "(docs/guides/c99.md). numpy "
    "unless told, or unless TFLQ_BACKEND is set.",
)
DEBUG_OPTION = click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")


def _load_kernels(_ctx: click.Context, _option: click.Parameter, paths: tuple[str, ...]) -> None:
    """Register the kernels of the user's files before the command reads its model."""
    if paths:
        from tflq import load_kernels

        load_kernels(*paths)


KERNELS_OPTION = click.option(
    "--kernels",
    multiple=True,
    metavar="FILE.py",
    is_eager=True,
    expose_value=False,
    callback=_load_kernels,
    help="Run this Python file first: kernels of custom operators "
    "(docs/internals/extending.md). Only files that you trust.",
)


def keep(ctx: click.Context, option: click.Parameter, value: object) -> None:
    """Keep the value of an option until the command ends (`option_value`), as a callback."""
    ctx.meta[f"tflq.{option.name}"] = value


def option_value(name: str) -> object:
    """Return the value of an option that `keep` kept; None without one."""
    context = click.get_current_context(silent=True)
    return None if context is None else context.meta.get(f"tflq.{name}")


WIDE_OPTION = click.option(
    "--wide",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=keep,
    help="Show every column and whole names, whatever the width of the terminal.",
)
JSON_OPTION = click.option(
    "--json", "as_json", is_flag=True, expose_value=False, callback=keep, help="Print the result as JSON."
)
CSV_OPTION = click.option(
    "--csv",
    "as_csv",
    metavar="TABLE",
    expose_value=False,
    callback=keep,
    help="Print this table of the result as CSV; tables are the keys of --json whose values are rows.",
)

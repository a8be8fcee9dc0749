"""Options that apply until a command ends: limits, a backend, kernels, wide tables."""

from __future__ import annotations

import click


def _apply_limits(ctx: click.Context, _option: click.Parameter, words: tuple[str, ...]) -> None:
    """Apply limits until the command ends."""
    from tflq.limits import export_limits, from_words

    if words:
        ctx.with_resource(export_limits(from_words(words)))


LIMIT_OPTION = click.option(
    "--limit",
    multiple=True,
    metavar="NAME=N",
    is_eager=True,
    expose_value=False,
    callback=_apply_limits,
    help="Limit on the resources of a model, as memory=8G: bytes, memory, tensors, operators, subgraphs, depth, "
    "expansion, subgraph-runs (docs/guides/limits.md). Repeatable.",
)


def _apply_backend(ctx: click.Context, _option: click.Parameter, name: str | None) -> None:
    """Apply a backend until the command ends."""
    if name is not None:
        from tflq.backends import backend

        ctx.with_resource(backend(name))


BACKEND_OPTION = click.option(
    "--backend",
    type=click.Choice(("numpy", "c")),
    expose_value=False,
    callback=_apply_backend,
    help="Backend of layers with 8 bits: c, compiled once by this machine's cc, with the same results "
    "(docs/guides/c99.md); or numpy (default: TFLQ_BACKEND, or numpy).",
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
    help="Python file to run first, with kernels of custom operators (docs/internals/extending.md). Only files that "
    "you trust. Repeatable.",
)


def keep(ctx: click.Context, option: click.Parameter, value: object) -> None:
    """Store the value of an option until the command ends (`option_value`), as a callback."""
    ctx.meta[f"tflq.{option.name}"] = value


def option_value(name: str) -> object:
    """Return the value of an option that `keep` stored; None without one."""
    context = click.get_current_context(silent=True)
    return None if context is None else context.meta.get(f"tflq.{name}")


WIDE_OPTION = click.option(
    "--wide",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=keep,
    help="Show all columns and full names, regardless of the terminal's width.",
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
    help="Print a table of the result as CSV: a key of --json with rows as its value.",
)

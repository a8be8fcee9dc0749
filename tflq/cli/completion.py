"""What the shell completes after Tab: commands, targets, tasks, keys of settings, layers of the model, files.

Nothing here may fail or print: what cannot be told completes to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

import click
from click.shell_completion import CompletionItem, get_completion_class

SHELLS = ("bash", "zsh", "fish")

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def file(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete to a file."""
    return [CompletionItem(incomplete, type="file")]


def targets(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete to the name of a target."""
    from tflq.api.targets import targets as every

    return _matching((t.name for t in every().targets), incomplete)


def tasks(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete to a task of MLPerf Tiny."""
    from tflq.benchmarks.tasks import TASKS

    return [CompletionItem(name, help=t.title) for name, t in TASKS.items() if name.startswith(incomplete)]


def task_folder(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete TASK=DIR to the task; what is no task is a file."""
    found = [CompletionItem(f"{item.value}=", help=item.help) for item in tasks(ctx, param, incomplete)]
    return found or file(ctx, param, incomplete)


def settings(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete KEY=VALUE to the keys of the targets that stand on the command line before it."""
    from tflq.api.targets import targets as named

    found: dict[str, str] = {}
    single, several = ctx.params.get("target__name"), ctx.params.get("targets")
    for name in (single,) if isinstance(single, str) else several or ():
        with suppress(Exception):
            found.update({s.key: s.help for t in named(name).targets for s in t.settings})
    return [CompletionItem(f"{key}=", help=text) for key, text in found.items() if f"{key}=".startswith(incomplete)]


def layers(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete to the names of the model's operators, and of what they do."""
    from tflq.api.read_model import read_model

    # Arguments in front of an option that still lacks its value stay in ctx.args.
    model = next((a for a in (ctx.params.get("model"), *ctx.args) if a), "")
    with suppress(Exception):
        nodes = read_model(model).main.nodes
        return _matching(dict.fromkeys(name for n in nodes for name in (n.operator, n.name)), incomplete)
    return []


def show(ctx: click.Context, _param: click.Parameter, shell: str | None) -> None:
    """Print the script that teaches a shell, and end.

    Raises:
        click.UsageError: the shell is not known.
    """
    if shell is None or ctx.resilient_parsing:
        return
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"no completion for {shell}; there is {', '.join(SHELLS)}", ctx)
    click.echo(kind(ctx.command, {}, "tflq", "_TFLQ_COMPLETE").source())
    ctx.exit()


def _matching(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]

"""Shell completion: commands, targets, tasks, keys of settings, layers of the model, files.

No function fails or prints; if candidates cannot be determined, there are none.
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
    """Complete TASK=DIR to the task, or to a file if no task matches."""
    items = [CompletionItem(f"{item.value}=", help=item.help) for item in tasks(ctx, param, incomplete)]
    return items or file(ctx, param, incomplete)


def settings(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete KEY=VALUE to the keys of the targets that precede it on the command line."""
    from tflq.api.targets import targets as named

    helps: dict[str, str] = {}
    single, several = ctx.params.get("target__name"), ctx.params.get("targets")
    for name in (single,) if isinstance(single, str) else several or ():
        with suppress(Exception):
            helps.update({s.key: s.help for t in named(name).targets for s in t.settings})
    return [CompletionItem(f"{key}=", help=text) for key, text in helps.items() if f"{key}=".startswith(incomplete)]


def layers(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete to the names of the model's operators and layers."""
    from tflq.api.read_model import read_model

    # Arguments before an option that still lacks its value stay in ctx.args.
    model = next((a for a in (ctx.params.get("model"), *ctx.args) if a), "")
    with suppress(Exception):
        nodes = read_model(model).main.nodes
        return _matching(dict.fromkeys(name for n in nodes for name in (n.operator, n.name)), incomplete)
    return []


def show(ctx: click.Context, _param: click.Parameter, shell: str | None) -> None:
    """Print the completion script of a shell, and exit.

    Raises:
        click.UsageError: The shell is unknown.
    """
    if shell is None or ctx.resilient_parsing:
        return
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"no completion for {shell}; available: {', '.join(SHELLS)}", ctx)
    click.echo(kind(ctx.command, {}, "tflq", "_TFLQ_COMPLETE").source())
    ctx.exit()


def _matching(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]

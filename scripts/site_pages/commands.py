"""The command reference: usage, arguments, options by group and examples of each command, from its click records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import click

from site_pages.tables import table
from tflq.cli.app import COMMANDS, LazyGroup
from tflq.cli.help import EXAMPLES, option_groups

FOLDER = "reference/commands"
GUIDES = {
    "inspect": "inspect", "run": "samples", "verify": "verify", "compare": "compare", "dumps": "dumps",
    "explain": "explain", "diff": "inspect", "sensitivity": "sensitivity", "search": "search", "tune": "search",
    "recover": "recover", "estimate": "estimate", "convert": "convert", "cut": "inspect", "dequantize": "inspect",
    "export": "export", "bench": "bench", "dut": "mlperf_board", "targets": "convert", "models": "mlperf_tiny",
    "data": "mlperf_tiny", "demo": "verify", "runtimes": "runtimes",
}  # fmt: skip
"""Command -> guide that explains it."""


def pages() -> Mapping[str, str]:
    """Return one page per command, and the list of commands."""
    group = LazyGroup("tflq")
    context = click.Context(group, info_name="tflq")
    texts = {f"{FOLDER}/{name}.md": _page(group, context, name) for name in COMMANDS}
    return {f"{FOLDER}/index.md": _index(), **texts}


def _index() -> str:
    rows = [(f"[`tflq {name}`]({name}.md)", summary) for name, summary in COMMANDS.items()]
    head = "# Commands\n\n[Conventions](../conventions.md) has the exit statuses and the rules for files.\n\n"
    return head + table(("command", "purpose"), rows)


def _page(group: click.Group, context: click.Context, name: str) -> str:
    command = group.get_command(context, name)
    assert command is not None
    guide = f"Guide: [{GUIDES[name]}](../../guides/{GUIDES[name]}.md).\n"
    return f"# tflq {name}\n\n" + "\n".join([*_command(command, context, f"tflq {name}", name), guide])


def _command(command: click.Command, parent: click.Context, words: str, name: str) -> Iterator[str]:
    """Yield the parts of a command and of its subcommands."""
    context = click.Context(command, info_name=name.rpartition(" ")[2], parent=parent)
    yield f"{_paragraphs(command.help or '')}\n"
    yield f"```text\n{words} {' '.join(command.collect_usage_pieces(context))}\n```\n"
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            part = command.get_command(context, below)
            assert part is not None
            yield f"## {words} {below}\n"
            yield from _command(part, context, f"{words} {below}", f"{name} {below}")
        return
    level = "#" * (words.count(" ") + 1)
    for title, options in option_groups(command, context).items():
        yield f"{level} {title}\n"
        yield table(("option", "meaning"), [(f"`{record}`", _escaped(text)) for record, text in options])
    if name in EXAMPLES:
        yield f"{level} Examples\n\n```sh\n" + "\n".join(EXAMPLES[name]) + "\n```\n"


def _paragraphs(text: str) -> str:
    return "\n\n".join(_escaped(" ".join(part.split())) for part in text.replace("\b", "").split("\n\n"))


def _escaped(text: str) -> str:
    """Return a help text as Markdown: brackets and stars are text, and so are angle brackets."""
    parts = text.split("`")
    for number in range(0, len(parts), 2):
        for sign in "[]*<>_":
            parts[number] = parts[number].replace(sign, f"\\{sign}")
    return "`".join(parts)

"""Every command's --help ends in examples, and each of them is a command line that the command takes."""

from __future__ import annotations

import re
import shlex

import click
import pytest

from tests.support.command import tflq
from tflq.cli.app import COMMANDS, cli
from tflq.cli.help import EXAMPLES

EVERY = [(name, line) for name, lines in EXAMPLES.items() for line in lines]


def leaves() -> set[str]:
    """Return every command, by the words behind `tflq`."""
    context = click.Context(cli)
    found = set()
    for name in COMMANDS:
        command = cli.get_command(context, name)
        found |= {f"{name} {part}" for part in command.commands} if isinstance(command, click.Group) else {name}
    return found


def test_every_command_has_examples() -> None:
    assert set(EXAMPLES) == leaves()


@pytest.mark.parametrize("name", ["compare", "models fetch", "search"])
def test_help_shows_them_as_they_are(name: str) -> None:
    shown = tflq(*name.split(), "--help").out
    assert "Examples:" in shown
    for line in EXAMPLES[name]:
        assert f"  {line}\n" in shown


@pytest.mark.parametrize(("name", "line"), EVERY)
def test_an_example_parses(name: str, line: str) -> None:
    words = shlex.split(line)
    assert words[: 1 + len(name.split())] == ["tflq", *name.split()]
    context, command = click.Context(cli), cli
    for word in name.split():
        assert isinstance(command, click.Group)
        command = command.get_command(context, word)
    command.make_context(name, words[1 + len(name.split()) :], parent=context)


@pytest.mark.parametrize("name", ["convert", "compare"])
def test_help_is_in_sections(name: str) -> None:
    parts = re.split(r"^(\w[^\n]*):\n", tflq(name, "--help").out, flags=re.MULTILINE)
    found = dict(zip(parts[1::2], parts[2::2], strict=True))
    for wanted, option in (
        ("Target and settings", "--set KEY=VALUE"),
        ("Ranges, for models without ranges", "--calibrate"),
        ("Samples", "--data [TASK=]DIR"),
        ("General", "--json"),
    ):
        placed = [
            title for title, text in found.items() if re.search(rf"^  (-\w, )?{re.escape(option)}", text, re.MULTILINE)
        ]
        assert placed == [wanted]

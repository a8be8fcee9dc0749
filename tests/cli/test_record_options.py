"""Options generated from records: type, default and help follow from the declaration."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import click
import pytest
from click.testing import CliRunner

import tflq.api
import tflq.cli
from tflq.cli.app import COMMANDS, LazyGroup
from tflq.cli.record_options import _entries, help_of, option
from tflq.sampling.samples import Span

Mode = Literal["fast", "exact"]


@dataclass(frozen=True)
class Base:
    """Fields of several records.

    Attributes:
        jobs: Number of processes; results do
            not depend on it.
    """

    jobs: int = 2


@dataclass(frozen=True)
class Record(Base):
    """A record.

    Attributes:
        mode: Kind of work.
        names: Names to use.
        take: Range to use.
        is_loud: True to print more.
        share: Part of the work.
        path: File to read.
    """

    mode: Mode | None = None
    names: tuple[str, ...] = ()
    take: Span | None = None
    is_loud: bool = False
    share: float = 0.0
    path: Path | None = None


@click.command()
@option(Record, "jobs", "-j", "--jobs", minimum=1)
@option(Record, "mode")
@option(Record, "names", "--name")
@option(Record, "take")
@option(Record, "is_loud", "--loud")
@option(Record, "share", minimum=0)
@option(Record, "path")
def command(**values: object) -> None:
    """Print the values."""
    click.echo(repr(values))


def run(*arguments: str) -> str:
    done = CliRunner().invoke(command, arguments)
    return done.output


def test_defaults() -> None:
    values = {"jobs": 2, "mode": None, "names": (), "take": None, "is_loud": False, "share": 0.0, "path": None}
    assert ast.literal_eval(run()) == values


def test_types() -> None:
    printed = run("-j", "3", "--mode", "fast", "--name", "a", "--name", "b", "--take", "7", "--loud", "--path", "x")
    assert "'jobs': 3" in printed
    assert "'names': ('a', 'b'), 'take': Span(start=0, stop=7), 'is_loud': True" in printed
    assert "PosixPath('x')" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--jobs", "0"), "0 is not in the range x>=1"),
        (("--mode", "slow"), "'slow' is not one of 'fast', 'exact'"),
        (("--take", "3:3"), "'3:3' is not a range"),
        (("--share", "-1"), "-1.0 is not in the range x>=0"),
    ],
)
def test_refusals(arguments: tuple[str, ...], message: str) -> None:
    assert message in run(*arguments)


def test_help_is_the_entry() -> None:
    assert help_of(Record, "jobs") == "Number of processes; results do not depend on it."
    assert help_of(Record, "is_loud") == "Print more."
    assert help_of(Record, "names", is_multiple=True) == "Names to use. Repeatable."
    with pytest.raises(KeyError, match="Record has no entry for other"):
        help_of(Record, "other")
    assert "[default: 2; x>=1]" in run("--help")


def options(command: click.Command, name: str) -> Iterator[tuple[str, click.Option]]:
    if isinstance(command, click.Group):
        for below, part in command.commands.items():
            yield from options(part, f"{name} {below}")
    yield from ((name, p) for p in command.params if isinstance(p, click.Option))


def test_every_option_has_a_help_without_python() -> None:
    group = LazyGroup("tflq")
    context = click.Context(group)
    for name in COMMANDS:
        part = group.get_command(context, name)
        assert part is not None
        for words, param in options(part, name):
            assert param.help, (words, param.name)
            assert param.help[0].isupper(), (words, param.name, param.help)
            assert "None" not in param.help, (words, param.name, param.help)


def test_no_help_repeats_an_entry_of_the_api() -> None:
    entries = set()
    for module in pkgutil.iter_modules(tflq.api.__path__, "tflq.api."):
        for value in vars(importlib.import_module(module.name)).values():
            if callable(value):
                entries |= set(_entries(value).values())
    for path in sorted(Path(tflq.cli.__path__[0]).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "help" and isinstance(node.value, ast.Constant):
                assert node.value.value not in entries, (path.name, node.value.value)

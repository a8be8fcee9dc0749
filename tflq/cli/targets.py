"""`tflq targets`: which there are, and what can be set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tflq.cli import output
from tflq.cli.common import reporting

if TYPE_CHECKING:
    from tflq.converters.settings import Setting
    from tflq.converters.targets import Target


@click.command("targets")
@click.argument("names", nargs=-1, metavar="[TARGET]...")
@reporting
def command(names: tuple[str, ...], as_json: bool) -> None:
    """List the targets and, for those named (all where none is), the keys that --set and --layer take."""
    from tflq.converters.targets import find_target, target_names

    targets = [find_target(name) for name in names or target_names()]
    if as_json:
        output.json_report({"targets": [_report(target) for target in targets]})
        return
    for number, target in enumerate(targets):
        if number:
            output.line()
        output.line(f"{target.name}: {target.summary}")
        rows = [(s.key, _default(s), s.allowed, "" if s.per_layer else "whole graph", s.help) for s in target.settings]
        if rows:
            output.table(("key", "default", "allowed", "holds for", "what it changes"), rows)


def _default(setting: Setting) -> str:
    """Return a default as the user would write it."""
    return str(setting.default).lower() if isinstance(setting.default, bool) else str(setting.default)


def _report(target: Target) -> dict[str, output.Json]:
    return {
        "name": target.name,
        "summary": target.summary,
        "arithmetic": target.arithmetic,
        "settings": [_setting(setting) for setting in target.settings],
    }


def _setting(setting: Setting) -> dict[str, output.Json]:
    return {
        "key": setting.key,
        "default": setting.default,
        "help": setting.help,
        "choices": setting.choices,
        "minimum": setting.minimum,
        "maximum": setting.maximum,
        "per_layer": setting.per_layer,
    }

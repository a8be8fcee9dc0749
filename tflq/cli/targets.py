"""`tflq targets`: which there are, and what can be set."""

from __future__ import annotations

import click

from tflq.api.targets import TargetsResult, targets
from tflq.cli import completion, output
from tflq.cli.options import reporting


@click.command("targets")
@click.argument("names", nargs=-1, metavar="[TARGET]...", shell_complete=completion.targets)
@reporting
def command(names: tuple[str, ...], as_json: bool) -> None:
    """List the targets and, for those named (all where none is), the keys that --set and --layer take."""
    found = targets(*names)
    output.show(found, as_json, lambda: _print(found))


def _print(found: TargetsResult) -> None:
    for number, target in enumerate(found.targets):
        if number:
            output.line()
        output.line(f"{target.name}: {target.summary}")
        rows = [
            (
                s.key,
                str(s.default).lower() if isinstance(s.default, bool) else str(s.default),
                s.allowed,
                "" if s.per_layer else "whole graph",
                s.help,
            )
            for s in target.settings
        ]
        if rows:
            output.table(("key", "default", "allowed", "holds for", "what it changes"), rows)

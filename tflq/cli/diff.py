"""`tflq diff`: what differs between two models."""

from __future__ import annotations

import click

from tflq.api.diff import diff
from tflq.cli import output
from tflq.cli.options import reporting


@click.command("diff")
@click.argument("first", metavar="A", type=click.Path())
@click.argument("second", metavar="B", type=click.Path())
@reporting
def command(first: str, second: str, as_json: bool) -> int:
    """List what differs between the models A and B: operators, attributes, types, shapes, quantization, constants.

    Nothing is run; `tflq compare` says what the differences do. Exit status 1 if anything differs.
    """
    found = diff(first, second)
    if as_json:
        output.json_report(found.to_dict())
    elif found.is_equal:
        output.line(f"{first} and {second} are equal")
    else:
        rows = [(f.kind, f.where, f.words) for f in found.findings]
        output.table(("what", "where", "first against second"), rows)
        output.line()
        output.line(f"{first} against {second}: {len(rows)} difference{'s' * (len(rows) > 1)}")
    return 0 if found.is_equal else 1

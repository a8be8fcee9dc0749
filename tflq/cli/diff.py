"""`tflq diff`: what differs between two models."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tflq.cli import output
from tflq.cli.common import read_model, reporting

if TYPE_CHECKING:
    from tflq.analysis.model_difference import Finding


@click.command("diff")
@click.argument("first", metavar="A", type=click.Path())
@click.argument("second", metavar="B", type=click.Path())
@reporting
def command(first: str, second: str, as_json: bool) -> int:
    """List what differs between the models A and B: operators, attributes, types, shapes, quantisation, constants.

    Nothing is run; `tflq compare` says what the differences do. Exit status 1 if anything differs.
    """
    from tflq.analysis.model_difference import model_differences

    found = model_differences(read_model(first), read_model(second))
    if as_json:
        output.json_report(
            {"first": first, "second": second, "equal": not found, "findings": [_entry(f) for f in found]}
        )
    else:
        if found:
            output.table(("what", "where", "first against second"), [(f.kind, f.where, f.words) for f in found])
            output.line()
        output.line(
            f"{first} against {second}: {len(found)} difference{'s' * (len(found) > 1)}"
            if found
            else f"{first} and {second} are equal"
        )
    return 1 if found else 0


def _entry(finding: Finding) -> dict[str, output.Json]:
    constant = finding.constant
    return {
        "kind": finding.kind,
        "where": finding.where,
        "words": finding.words,
        "channel": None if constant is None else constant.channel,
        "differing": None if constant is None else constant.differing,
    }

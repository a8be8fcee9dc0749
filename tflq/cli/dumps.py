"""`tflq dumps`: how a tensor dump is understood beside its model."""

from __future__ import annotations

import click

from tflq.api.dumps import DumpsOptions, dumps
from tflq.api.options import SampleOptions, changed
from tflq.cli import output
from tflq.cli.help import SectionedCommand
from tflq.cli.options import calibration_options, dump_options, reporting, sample_options, target_options
from tflq.diagnosis.dumps.understanding import Understood


@click.command("dumps", cls=SectionedCommand)
@click.argument("path", metavar="DUMP")
@click.option("--model", required=True, metavar="M", help="Whose tensors it holds: MODEL or MODEL@TARGET.")
@sample_options(1)
@dump_options
@target_options()
@calibration_options
@reporting
def command(path: str, model: str, samples: SampleOptions, as_json: bool, **options: object) -> None:
    """Show how DUMP is understood: which array is which tensor, its layout and encoding, and what told it.

    DUMP is a file or folder as boards and tools write them (docs/dumps.md), [TENSOR=]FILE for one array.
    """
    found = dumps(path, model, samples, changed(DumpsOptions(), options), progress=output.progress)
    output.show(found, as_json, lambda: _print(found.understood, model))


def _print(understood: Understood, model: str) -> None:
    readings = understood.readings
    plural = "s" * (understood.samples != 1)
    output.line(f"{understood.path}: {len(readings)} tensors of {model}, {understood.samples} sample{plural}")
    output.lines(understood.notes)
    if understood.missing:
        output.line(f"not in it: {output.some(understood.missing)}")
    output.line()
    short = output.short
    rows = [(short(r.wanted.name), short(r.source), r.stored, r.layout, r.encoding, r.why) for r in readings]
    output.table(("tensor", "array", "stored", "layout", "numbers", "told by"), rows)

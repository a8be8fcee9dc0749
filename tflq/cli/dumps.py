"""`tflq dumps`: how a tensor dump is understood beside its model."""

from __future__ import annotations

import click

from tflq.api.dumps import DumpsOptions, dumps
from tflq.api.options import SampleOptions, replace_options
from tflq.cli import output
from tflq.cli.help import SectionedCommand
from tflq.cli.options import calibration_options, dump_options, reporting, sample_options, target_options


@click.command("dumps", cls=SectionedCommand)
@click.argument("path", metavar="DUMP")
@click.option("--model", required=True, metavar="M", help="Whose tensors it holds: MODEL or MODEL@TARGET.")
@sample_options(1)
@dump_options
@target_options()
@calibration_options
@reporting
def command(path: str, model: str, samples: SampleOptions, **options: object) -> int:
    """Show how DUMP is understood: which array is which tensor, its layout and encoding, and what told it.

    DUMP is a file or folder as boards and tools write them (docs/guides/dumps.md), [TENSOR=]FILE for one array.
    """
    return output.show(dumps(path, model, samples, replace_options(DumpsOptions(), options), progress=output.progress))

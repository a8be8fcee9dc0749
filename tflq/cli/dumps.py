"""`tflq dumps`: show the interpretation of a tensor dump by its model."""

from __future__ import annotations

import click

from tflq.api.dumps import DumpsOptions, dumps
from tflq.api.options import SampleOptions, replace_options
from tflq.cli import output
from tflq.cli.help import SectionedCommand
from tflq.cli.options import calibration_options, dump_options, reporting, sample_options, target_options
from tflq.cli.record_options import option


@click.command("dumps", cls=SectionedCommand)
@click.argument("path", metavar="DUMP")
@option(dumps, "model", required=True, metavar="M")
@sample_options(1)
@dump_options
@target_options()
@calibration_options
@reporting
def command(path: str, model: str, samples: SampleOptions, **options: object) -> int:
    """Show the interpretation of DUMP: the array, layout and encoding of each tensor, with the evidence.

    DUMP is a file or folder in a format of boards and tools (docs/guides/dumps.md), [TENSOR=]FILE for one array.
    """
    return output.show(dumps(path, model, samples, replace_options(DumpsOptions(), options), progress=output.progress))

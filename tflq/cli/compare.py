"""`tflq compare`: compare two models, targets, arithmetics or tensor dumps on the same samples."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from tflq.api.compare import DEFAULT_SAMPLES, CompareOptions, compare
from tflq.api.options import SampleOptions, replace_options
from tflq.cli import completion, output
from tflq.cli.help import SectionedCommand
from tflq.cli.options import (
    SIDE_HELP,
    STRICT_OPTION,
    calibration_options,
    dump_options,
    report_option,
    reporting,
    sample_options,
    target_options,
    worker_options,
)
from tflq.cli.outputs import OutputPath, writing
from tflq.cli.record_options import option

_option = partial(option, CompareOptions)


@click.command("compare", cls=SectionedCommand, epilog=f"A and B: {SIDE_HELP}")
@click.argument("first", metavar="A", shell_complete=completion.file)
@click.argument("second", metavar="[B]", default="@float", shell_complete=completion.file)
@sample_options(DEFAULT_SAMPLES)
@_option("isolated")
@_option("tolerance", minimum=0, metavar="LSB")
@_option("tensors", "--tensor", metavar="NAME")
@dump_options
@STRICT_OPTION
@_option("top", minimum=1)
@worker_options(CompareOptions)
@report_option
@click.option(
    "--model-explorer",
    "node_data_path",
    type=OutputPath(path_type=Path, dir_okay=False),
    metavar="FILE.json",
    help="Output file for the noise of each tensor, as node data of Model Explorer.",
)
@target_options()
@calibration_options
@reporting
@writing
def command(
    first: str,
    second: str,
    samples: SampleOptions,
    strict: bool,
    node_data_path: Path | None,
    **options: object,
) -> int:
    """Compare A with the reference B, tensor by tensor, and rank the layers by the noise that they add.

    Without B the reference is A's model in floating point. Exit status 1 if a tensor differs, unless A is an unchanged
    model, B a dump of TFLite, and docs/differences/tflite_operators.md lists all differences as known.
    """
    result = compare(first, second, samples, replace_options(CompareOptions(), options), progress=output.progress)
    if node_data_path is not None:
        result.write_node_data(node_data_path)
    return max(output.show(result), int(strict and not result.is_equal))

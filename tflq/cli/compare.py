"""`tflq compare`: two models, targets, arithmetics or tensor dumps over the same samples."""

from __future__ import annotations

from pathlib import Path

import click

from tflq.api.compare import DEFAULT_SAMPLES, CompareOptions, compare
from tflq.api.options import SampleOptions, replace_options
from tflq.cli import completion, output
from tflq.cli.help import SectionedCommand
from tflq.cli.options import (
    JOBS_OPTION,
    SCHEDULER_OPTION,
    SIDE_HELP,
    STRICT_OPTION,
    calibration_options,
    dump_options,
    report_option,
    reporting,
    sample_options,
    target_options,
)
from tflq.cli.outputs import OutputPath, writing


@click.command("compare", cls=SectionedCommand, epilog=f"A and B: {SIDE_HELP}")
@click.argument("first", metavar="A", shell_complete=completion.file)
@click.argument("second", metavar="[B]", default="@float", shell_complete=completion.file)
@sample_options(DEFAULT_SAMPLES)
@click.option("--isolated", is_flag=True, help="Feed each layer of A with B's tensors: its own error alone.")
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    default=0.0,
    metavar="LSB",
    help="Differences up to it do not count as such (0: any difference counts).",
)
@click.option("--tensor", "tensors", multiple=True, metavar="NAME", help="Compare this tensor of A only. Repeat it.")
@dump_options
@STRICT_OPTION
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True, help="Layers to rank in the text.")
@JOBS_OPTION
@SCHEDULER_OPTION
@report_option
@click.option(
    "--model-explorer",
    "node_data_path",
    type=OutputPath(path_type=Path, dir_okay=False),
    metavar="FILE.json",
    help="Write the noise of each tensor as node data of Model Explorer, too.",
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
    """Compare A with the reference B, tensor by tensor, and rank the layers by what they add.

    Without B the reference is A's model in floating point. Exit status 1 if a tensor differs; not where A is a model as
    it is, B a dump of TFLite, and docs/differences/tflite_operators.md lists all that differs as known.
    """
    found = compare(first, second, samples, replace_options(CompareOptions(), options), progress=output.progress)
    if node_data_path is not None:
        found.write_node_data(node_data_path)
    return max(output.show(found), int(strict and not found.is_equal))

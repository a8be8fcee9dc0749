"""`tflq compare`: compare two models, targets, arithmetics or tensor dumps on the same samples."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from tflq.api.compare import DEFAULT_SAMPLES, CompareOptions, compare
from tflq.api.compare_runtimes import CompareRuntimesResult, compare_runtimes
from tflq.api.options import SampleOptions, replace_options
from tflq.api.prove import ProveResult, prove
from tflq.api.sides import parse_runtimes
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
@click.argument("others", metavar="[C]...", nargs=-1, shell_complete=completion.file)
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
@click.option(
    "--prove",
    "is_proof",
    is_flag=True,
    help="A and B are runtimes of one model: decide each layer over all its inputs, without samples.",
)
@target_options()
@calibration_options
@reporting
@writing
def command(
    first: str,
    second: str,
    others: tuple[str, ...],
    samples: SampleOptions,
    strict: bool,
    is_proof: bool,
    node_data_path: Path | None,
    **options: object,
) -> int:
    """Compare A with the reference B, tensor by tensor, and rank the layers by the noise that they add.

    With C and more, all are runtimes of one model (MODEL@ref MODEL@xnnpack MODEL@tflm): which agree, the first layer
    where they part, its two rules, and the accuracy of each with --data. Exit status 1 only with --strict.

    Without B the reference is A's model in floating point. Exit status 1 if a tensor differs; unless A is an unchanged
    model, B a dump of TFLite, and docs/differences/tflite_operators.md lists all differences as known.
    """
    if is_proof or others:
        result = _compare_runtimes((first, second, *others), samples, is_proof)
        return max(output.show(result), int(strict and not result.is_equal))
    comparison = compare(first, second, samples, replace_options(CompareOptions(), options), progress=output.progress)
    if node_data_path is not None:
        comparison.write_node_data(node_data_path)
    return max(output.show(comparison), int(strict and not comparison.is_equal))


def _compare_runtimes(
    sides: tuple[str, ...], samples: SampleOptions, is_proof: bool
) -> ProveResult | CompareRuntimesResult:
    model, runtimes = parse_runtimes(*sides)
    if not is_proof:
        return compare_runtimes(model, runtimes, samples, progress=output.progress)
    if len(runtimes) > 2:
        raise click.UsageError("--prove compares two runtimes")
    return prove(model, *runtimes)

"""`tflq explain`: every step of one output element."""

from __future__ import annotations

import click

from tflq.api.explain import ExplainOptions, explain
from tflq.api.options import SampleOptions, replace_options
from tflq.api.runtimes import RUNTIME_NAMES
from tflq.cli import output
from tflq.cli.help import SectionedCommand
from tflq.cli.options import (
    MODEL_ARGUMENT,
    RUNTIME_OPTION,
    SIDE_HELP,
    calibration_options,
    dump_options,
    reporting,
    sample_options,
    target_options,
)


def _index(ctx: click.Context, param: click.Parameter, value: str) -> tuple[int, ...]:
    """Read whole numbers between commas, as "0,12,3,17" or "[0, 12, 3, 17]"."""
    try:
        return tuple(int(part) for part in value.strip("[]() ").split(",") if part.strip())
    except ValueError:
        raise click.BadParameter(
            f"'{value}' is no index; write whole numbers with commas, as 0,12,3,17", ctx, param
        ) from None


@click.command("explain", cls=SectionedCommand, epilog=f"B: {SIDE_HELP}")
@MODEL_ARGUMENT
@click.option(
    "--tensor",
    required=True,
    metavar="NAME",
    help="A tensor's name or number in the model, or a layer as --layer names it.",
)
@click.option("--index", required=True, metavar="i,j,k", callback=_index, help="The element, in the model's own axes.")
@click.option("--sample", type=click.IntRange(min=0), default=0, show_default=True, help="Which of the samples.")
@sample_options(1)
@click.option("--arithmetic", type=click.Choice(("tflite",)), help="TFLite's integers, the default.")
@RUNTIME_OPTION
@click.option(
    "--against-runtime", type=click.Choice(RUNTIME_NAMES), help="Another runtime's computation of it, side by side."
)
@click.option("--against", metavar="B", help="Another computation of the same element, side by side; or a dump.")
@dump_options
@target_options("The integers of this target.")
@calibration_options
@reporting
def command(model: str, tensor: str, index: tuple[int, ...], samples: SampleOptions, **options: object) -> int:
    """Show every step of one element of MODEL: inputs, weights, products, bias, multiplier, roundings, clamp.

    Exit status 1 if --against differs.
    """
    chosen = replace_options(ExplainOptions(), options)
    return output.show(explain(model, tensor, index, samples, chosen, progress=output.progress))

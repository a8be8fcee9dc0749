"""`tflq explain`: show every step of one output element."""

from __future__ import annotations

from functools import partial

import click

from tflq.api.explain import ExplainOptions, explain
from tflq.api.options import SampleOptions, replace_options
from tflq.cli import output
from tflq.cli.help import SectionedCommand
from tflq.cli.options import (
    MODEL_ARGUMENT,
    SIDE_HELP,
    calibration_options,
    dump_options,
    reporting,
    sample_options,
    target_options,
)
from tflq.cli.record_options import help_of, option

_option = partial(option, ExplainOptions)


def _index(ctx: click.Context, param: click.Parameter, value: str) -> tuple[int, ...]:
    """Parse integers separated by commas, as "0,12,3,17" or "[0, 12, 3, 17]"."""
    try:
        return tuple(int(part) for part in value.strip("[]() ").split(",") if part.strip())
    except ValueError:
        raise click.BadParameter(
            f"'{value}' is not an index; write integers with commas, as 0,12,3,17", ctx, param
        ) from None


@click.command("explain", cls=SectionedCommand, epilog=f"B: {SIDE_HELP}")
@MODEL_ARGUMENT
@option(explain, "tensor", required=True, metavar="NAME")
@option(explain, "index", required=True, multiple=False, type=str, metavar="i,j,k", callback=_index)
@_option("sample", minimum=0, default=0, show_default=True)
@sample_options(1)
@_option("arithmetic")
@_option("runtime")
@_option("against_runtime")
@_option("against", metavar="B")
@dump_options
@target_options(help_of(ExplainOptions, "target"))
@calibration_options
@reporting
def command(model: str, tensor: str, index: tuple[int, ...], samples: SampleOptions, **options: object) -> int:
    """Show every step of one element of MODEL: inputs, weights, products, bias, multiplier, roundings, clamp.

    Exit status 1 if --against differs.
    """
    chosen = replace_options(ExplainOptions(), options)
    return output.show(explain(model, tensor, index, samples, chosen, progress=output.progress))

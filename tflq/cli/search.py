"""`tflq search`: find the cheapest mixed precision for a required quality, or the last layer that needs more bits."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import click
from click.core import ParameterSource

from tflq.api.backward import BackwardOptions
from tflq.api.options import SampleOptions, TargetOptions, replace_options
from tflq.api.search import OBJECTIVES, SearchOptions, search
from tflq.cli import output
from tflq.cli.help import SectionedCommand
from tflq.cli.in_force import BACKEND_OPTION
from tflq.cli.options import (
    MODEL_ARGUMENT,
    calibration_options,
    output_option,
    target_options,
    with_page,
)
from tflq.cli.precision_options import trials
from tflq.cli.record_options import option
from tflq.errors import OutputError

_NOT_BACKWARD = (
    *("at_least", "at_most", "min_sqnr", "in_float", "slack", "objective", "verify", "path", "points", "report"),
    *("widths", "jobs", "scheduler", "results"),
)
_BACKWARD = ("drop", "template_path")
_option = partial(option, SearchOptions)
drop_option = option(BackwardOptions, "drop", minimum=0)
template_option = output_option(
    "--write-template", "template_path", metavar="FILE", help="Output file for --template of `tflq convert`."
)


@click.command("search", cls=SectionedCommand)
@MODEL_ARGUMENT
@BACKEND_OPTION
@target_options("Target with selectable bits.", required=True)
@_option("at_least", metavar="PERCENT")
@_option("at_most", metavar="NUMBER")
@_option("min_sqnr", metavar="DB")
@_option("objective", type=click.Choice(OBJECTIVES))
@_option("in_float", "--float")
@_option("slack", minimum=0, metavar="DB")
@_option("recover")
@_option("verify")
@output_option(
    "-o",
    "--output",
    "path",
    metavar="FILE",
    help="Output file for --settings of `tflq convert` and other commands. Results are then stored in FILE.results, "
    "unless --results names another file.",
)
@output_option("--points", metavar="FILE.csv", help="Output file for all points, for a plot.")
@click.option(
    "--backward",
    is_flag=True,
    help="Use the backward strategy: bisect for the last layer from which on all layers need more bits; with --drop "
    "and --write-template. Without --data it uses 32 random samples by default, and the smallest cosine between the "
    "outputs and the float model's outputs.",
)
@drop_option
@template_option
@calibration_options
@trials
@with_page
def command(
    model: str,
    target: TargetOptions,
    samples: SampleOptions,
    backward: bool,
    drop: float | None,
    template_path: Path | None,
    path: Path | None,
    points: Path | None,
    **options: object,
) -> int:
    """Find the cheapest setting of MODEL's layers that keeps an accuracy, or a signal-to-noise ratio.

    The cost is the size in bytes, or with --objective cycles or energy, for targets with figures in `tflq estimate`.

    The result depends on model, samples and options, not on the number of processes or machines. An interrupted search
    continues with the stored results. Exit status 1 if no setting meets the requirement, or --verify does not confirm
    it.
    """
    _refuse_other_strategy(backward)
    if backward:
        fields = {
            key: value for key, value in options.items() if key in ("data", "labels", "span", "calibration", "metric")
        }
        chosen = replace_options(BackwardOptions(drop=drop), fields)
        return search_backward(model, target, samples, chosen, template_path)
    cheapest = replace_options(SearchOptions(), options)
    cheapest.check()
    _require_folders(path, points)
    if path is not None and cheapest.results is None:
        cheapest = replace_options(cheapest, {"results": path.with_name(f"{path.name}.results")})
    result = search(model, target, samples, cheapest, progress=output.progress)
    if points is not None:
        result.write_csv(points, "points")
    if path is not None:
        result.write_settings(path)
    status = output.show(result)
    if path is not None:
        output.remark(f"written: {path}" if result.search.chosen else f"{path} was not written")
    return status


def search_backward(
    model: str,
    target: TargetOptions,
    samples: SampleOptions,
    options: BackwardOptions,
    template_path: Path | None,
) -> int:
    """Search backward, write the template and print; return the status: 1 if no setting is accurate enough."""
    result = search(model, target, samples, options=options)
    if template_path is not None:
        result.write_template(template_path)
    return output.show(result)


def _refuse_other_strategy(backward: bool) -> None:
    context = click.get_current_context()
    for parameter in context.command.params:
        name = parameter.name or ""
        is_given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if is_given and name in (_NOT_BACKWARD if backward else _BACKWARD):
            flag = max(parameter.opts, key=len)
            raise click.UsageError(f"{flag} cannot be used with --backward" if backward else f"{flag} needs --backward")


def _require_folders(*paths: Path | None) -> None:
    """Refuse files that cannot be written, before hours of work."""
    for path in paths:
        if path is not None and (path.is_dir() or not os.access(path.parent, os.W_OK)):
            raise OutputError(f"{path}: cannot be written; name a file in an existing, writable folder")

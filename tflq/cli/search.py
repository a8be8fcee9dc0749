"""`tflq search`: the cheapest mixed precision that keeps a quality, or from which layer on more bits are needed."""

from __future__ import annotations

import os
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
    read_span,
    target_options,
    with_page,
)
from tflq.cli.precision_options import trials
from tflq.errors import OutputError

_NOT_BACKWARD = (
    *("at_least", "at_most", "min_sqnr", "in_float", "slack", "objective", "verify", "path", "points", "report"),
    *("widths", "jobs", "scheduler", "results"),
)
_BACKWARD = ("drop", "template_path")
drop_option = click.option(
    "--drop",
    type=click.FloatRange(min=0),
    help="How much worse than in floating point the score may be: percentage points with --data, 1 unless told, or in "
    "the unit of --metric; else a cosine, 0.01 unless told.",
)
template_option = output_option(
    "--write-template", "template_path", metavar="FILE", help="Write what was found, for --template of `tflq convert`."
)


@click.command("search", cls=SectionedCommand)
@MODEL_ARGUMENT
@BACKEND_OPTION
@target_options("A target with a choice of bits.", required=True)
@click.option("--at-least", type=float, metavar="PERCENT", help="Accuracy, or --metric, to keep; needs --data.")
@click.option("--at-most", type=float, metavar="NUMBER", help="The same for a --metric of which less is better.")
@click.option("--min-sqnr", type=float, metavar="DB", help="Ratio of the outputs to keep, against the model as it is.")
@click.option(
    "--objective",
    type=click.Choice(OBJECTIVES),
    default=SearchOptions.objective,
    show_default=True,
    help="What to make small: bytes of the layers, or cycles or energy of the network as `tflq estimate` says.",
)
@click.option("--float", "in_float", is_flag=True, help="Compare the outputs with the model in floating point instead.")
@click.option(
    "--slack",
    type=click.FloatRange(min=0),
    default=SearchOptions.slack,
    show_default=True,
    metavar="DB",
    help="How much noisier than the first setting found a smaller one may be; inf lets the accuracy alone decide. "
    "--recover has no use for it: there all settings tell what accuracy a ratio is worth.",
)
@click.option(
    "--recover",
    is_flag=True,
    help="Recover every setting with the samples of the search (docs/guides/recover.md), and compare.",
)
@click.option("--verify", callback=read_span, metavar="START:STOP", help="Try the setting on these other samples, too.")
@output_option(
    "-o",
    "--output",
    "path",
    metavar="FILE",
    help="Write the setting for --settings of `tflq convert` and others. Results are then kept in FILE.results, unless "
    "--results names another file.",
)
@output_option("--points", metavar="FILE.csv", help="Write all points, for a plot.")
@click.option(
    "--backward",
    is_flag=True,
    help="The other strategy: find the last layer from which on all need more bits, by halving from the back; "
    "with --drop and --write-template. Its samples are 32 random ones unless told, its score without --data is the "
    "smallest cosine of the outputs and the float model's.",
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

    Cheap is what takes few bytes, unless --objective says cycles or energy, of targets that `tflq estimate` has
    figures for.

    The answer depends on model, samples and options, not on the number of processes or machines. An interrupted search
    goes on where it was. Exit status 1 if no setting keeps what is required, or --verify does not confirm it.
    """
    _refuse_of_other_strategy(backward)
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
    found = search(model, target, samples, cheapest, progress=output.progress)
    if points is not None:
        found.write_csv(points, "points")
    if path is not None:
        found.write_settings(path)
    status = output.show(found)
    if path is not None:
        output.remark(f"written: {path}" if found.search.chosen else f"{path} was not written")
    return status


def search_backward(
    model: str,
    target: TargetOptions,
    samples: SampleOptions,
    options: BackwardOptions,
    template_path: Path | None,
) -> int:
    """Search backward, write the template and print; return the status: 1 where nothing is near enough."""
    found = search(model, target, samples, options=options)
    if template_path is not None:
        found.write_template(template_path)
    return output.show(found)


def _refuse_of_other_strategy(backward: bool) -> None:
    context = click.get_current_context()
    for parameter in context.command.params:
        name = parameter.name or ""
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if given and name in (_NOT_BACKWARD if backward else _BACKWARD):
            option = max(parameter.opts, key=len)
            raise click.UsageError(f"{option} is {'not ' * backward}for --backward")


def _require_folders(*paths: Path | None) -> None:
    """Refuse before hours of work what could not be written after them."""
    for path in paths:
        if path is not None and (path.is_dir() or not os.access(path.parent, os.W_OK)):
            raise OutputError(f"{path}: cannot be written: name a file in a folder that exists and can be written")

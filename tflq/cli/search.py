"""`tflq search`: the cheapest mixed precision that keeps a quality, or from which layer on more bits are needed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from tflq.api.backward import BackwardOptions, BackwardResult
from tflq.api.options import SampleOptions, TargetOptions, changed
from tflq.api.search import OBJECTIVES, SearchOptions, SearchResult, search
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
from tflq.report.precision import (
    cost_columns,
    costs,
    describe_outcome,
    layer_table,
    noise_texts,
    quality_head,
    requirement_text,
    value_text,
)

if TYPE_CHECKING:
    from tflq.precision.search import Point, PrecisionSearch


_SHOWN_BELOW = 10.0
"""Points so far below what is required, in percent or dB, stay out of the printed table."""
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
    help="Recover every setting with the samples of the search (docs/recover.md), and compare.",
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
    report: Path | None,
    as_json: bool,
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
        chosen = changed(BackwardOptions(drop=drop), fields)
        return search_backward(model, target, samples, chosen, template_path, as_json)
    cheapest = changed(SearchOptions(), options)
    cheapest.check()
    _require_folders(path, points, report)
    if path is not None and cheapest.results is None:
        cheapest = changed(cheapest, {"results": path.with_name(f"{path.name}.results")})
    found = search(model, target, samples, cheapest, progress=output.progress)
    if points is not None:
        found.write_points(points)
    if path is not None:
        found.write_settings(path)
    output.show(found, as_json, lambda: _print(found, path), report)
    return 0 if found.is_kept else 1


def search_backward(
    model: str,
    target: TargetOptions,
    samples: SampleOptions,
    options: BackwardOptions,
    template_path: Path | None,
    as_json: bool,
) -> int:
    """Search backward, write the template and print; return the status: 1 where nothing is near enough."""
    found = search(model, target, samples, options=options)
    if template_path is not None:
        found.write_template(template_path)
    output.show(found, as_json, lambda: _print_backward(found))
    return 0 if found.is_kept else 1


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


def _print(result: SearchResult, path: Path | None) -> None:
    """Print the table, the layers of the setting, what it gives, and where it was written."""
    found = result.found
    point = found.chosen or found.best
    which = f"samples {result.span}" if result.span else f"{found.samples} samples"
    output.line(f"{result.model} for {found.target}: {len(found.plan.layers)} layers with a choice, {which}")
    output.line(f"required: {requirement_text(found.requirement)}; made small: {found.objective.name}")
    if point is not None and found.objective.name != "bytes":
        output.line(f"{found.objective.name}: {point.cost.basis}")
    if result.plain is not None:
        _print_points(result.plain, "without recovery: ")
    _print_points(found, "recovered: " if result.plain is not None else "")
    if point is not None:
        layers = layer_table(found, point)
        rows = [[output.short(cell) for cell in row] for row in layers.rows]
        output.table(layers.columns, rows, right=layers.numbers)
        output.line()
    output.lines(describe_outcome(found, result.verified, result.floating))
    output.lines(noise_texts(found, result.beside))
    output.line(f"{found.evaluated + found.known} settings, {found.known} of them known from before")
    if path is not None:
        output.line(f"written: {path}" if found.chosen else f"{path} was not written")


def _print_points(found: PrecisionSearch, which: str = "") -> None:
    output.line()
    counted = cost_columns(found)
    metric = found.requirement.metric
    columns = (*counted, quality_head(metric), "SQNR, dB", "bits of the layers", "")
    rows = [
        (
            *costs(found, p),
            value_text(p.result, metric),
            f"{p.result.sqnr_db:.1f}",
            " ".join(map(str, p.bits)),
            _remark(found, p),
        )
        for p in found.points
        if _is_shown(found, p)
    ]
    shown = "the Pareto front, equal bits, and the setting"
    title = f"{which}{found.objective.name} against quality: {shown} ({len(found.points)} points in all)"
    output.table(columns, rows, right=columns[: len(counted) + 2], title=title)
    output.line()


def _is_shown(found: PrecisionSearch, point: Point) -> bool:
    if point in (found.chosen, found.best):
        return True
    accuracy, asked = point.result.accuracy_percent, found.requirement
    near = asked.score is None or accuracy is None or accuracy >= asked.score - _SHOWN_BELOW
    loud = asked.sqnr_db is not None and point.result.sqnr_db < asked.sqnr_db - _SHOWN_BELOW
    return (point.is_pareto or point.is_uniform) and near and not loud


def _remark(found: PrecisionSearch, point: Point) -> str:
    texts = ["Pareto"] if point.is_pareto else []
    texts += ["equal bits"] if point.is_uniform else []
    if point == found.chosen:
        texts.append("chosen")
    elif found.requirement.holds(point.result):
        least = found.least_sqnr_db
        texts.append("kept, too noisy" if least is not None and point.result.sqnr_db < least else "kept")
    return ", ".join(texts)


def _print_backward(result: BackwardResult) -> None:
    found = result.found
    rows = [(str(t.first), t.stage, f"{t.score:.6f}", f"{found.drop(t):.6f}") for t in found.tried]
    output.table(
        ("from layer", "promoted to", found.score_name, "drop"), rows, right=("from layer", found.score_name, "drop")
    )
    output.line()
    if found.chosen is None:
        best = found.best
        output.line(
            f"nothing is within {found.largest_drop:g} of {found.reference:.6f}; nearest is {best.score:.6f}, layers "
            f"from {best.first} on promoted to {best.stage}"
        )
    elif not found.rules:
        output.line(f"no layer needs more: the drop is {found.drop(found.chosen):.6f}")
    else:
        node = result.subject.original.main.nodes[found.chosen.first]
        output.line(f"from layer {found.chosen.first} ({node.operator} '{node.name}') on: {found.chosen.stage}")
        output.line(f"--layer {found.rules[0]}")

"""`tflq search`: the smallest mixed precision that keeps a stated quality."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tflq.cli import output
from tflq.cli.calibration_options import CalibrationChoice, calibration
from tflq.cli.common import MODEL_ARGUMENT, reporting
from tflq.cli.precision_options import (
    DEFAULT_SAMPLES,
    Span,
    TrialChoice,
    open_evaluator,
    read_span,
    read_subject,
    trials,
)
from tflq.cli.precision_output import points_csv, print_search, result_text, search_json
from tflq.cli.report_options import report_option, write_report
from tflq.cli.target_options import target_settings

if TYPE_CHECKING:
    from tflq.cli.precision_options import Subject
    from tflq.precision.problem import Problem
    from tflq.precision.search import PrecisionSearch
    from tflq.precision.trial import Result

_DEFAULT_SLACK_DB = 3.0


@click.command("search")
@MODEL_ARGUMENT
@click.option("-t", "--target", "target_name", required=True, metavar="TARGET", help="A target with a choice of bits.")
@click.option("--at-least", type=click.FloatRange(0, 100), metavar="PERCENT", help="Accuracy to keep; needs --data.")
@click.option("--min-sqnr", type=float, metavar="DB", help="Ratio of the outputs to keep, against the model as it is.")
@click.option("--float", "in_float", is_flag=True, help="Compare the outputs with the model in floating point instead.")
@click.option(
    "--slack",
    type=click.FloatRange(min=0),
    default=_DEFAULT_SLACK_DB,
    show_default=True,
    metavar="DB",
    help="How much noisier than the first setting found a smaller one may be; inf lets the accuracy alone decide.",
)
@click.option("--verify", callback=read_span, metavar="START:STOP", help="Try the setting on these other samples, too.")
@click.option(
    "-o",
    "--output",
    "path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the setting for --settings of `tflq convert` and others. Results are then kept in FILE.results, unless "
    "--results names another file.",
)
@click.option("--points", type=click.Path(path_type=Path), metavar="FILE.csv", help="Write all points, for a plot.")
@target_settings
@calibration
@trials
@report_option
@reporting
def command(
    model: str,
    target_name: str,
    at_least: float | None,
    min_sqnr: float | None,
    in_float: bool,
    slack: float,
    verify: Span | None,
    path: Path | None,
    points: Path | None,
    assignments: tuple[str, ...],
    layers: tuple[str, ...],
    calibration: CalibrationChoice,
    choice: TrialChoice,
    report: Path | None,
    as_json: bool,
) -> int:
    """Find the smallest setting of MODEL's layers that keeps an accuracy, or a signal-to-noise ratio.

    The answer depends on model, samples and options, not on the number of processes or machines. An interrupted search
    goes on where it was. Exit status 1 if no setting keeps what is required, or --verify does not confirm it.
    """
    from tflq.precision.search import search
    from tflq.precision.trial import Requirement

    _check(at_least, min_sqnr, verify, choice)
    _require_folders(path, points, report)
    if path is not None and choice.results is None:
        choice = replace(choice, results=path.with_name(f"{path.name}.results"))
    most = max((span.stop for span in (choice.span, verify) if span), default=DEFAULT_SAMPLES)
    subject = read_subject(model, choice, calibration, most)
    problem = subject.problem(target_name, (assignments, layers), choice.span, choice, in_float)
    with open_evaluator(problem, choice) as evaluator:
        found = search(evaluator, Requirement(at_least, min_sqnr), slack)
    verified = _verified(subject, problem, found, verify, choice)
    _write(path, points, problem, found, choice.span, verified)
    if report is not None:
        from tflq.report.precision import search_page

        write_report(report, search_page(model, found, verified))
    if as_json:
        output.json_report(search_json(model, found, verified))
    else:
        print_search(model, found, choice.span, verified)
        if path is not None:
            output.line(f"written: {path}" if found.chosen else f"{path} was not written")
    return 0 if found.chosen and (verified is None or found.requirement.holds(verified)) else 1


def _check(at_least: float | None, min_sqnr: float | None, verify: Span | None, choice: TrialChoice) -> None:
    if any(value is not None and math.isnan(value) for value in (at_least, min_sqnr)):
        raise click.UsageError("--at-least and --min-sqnr are numbers; nan is none")
    if at_least is None and min_sqnr is None:
        raise click.UsageError("say what to keep: --at-least PERCENT, --min-sqnr DB, or both")
    if at_least is not None and choice.data is None:
        raise click.UsageError("--at-least needs labels: name them with --data, or use --min-sqnr")
    if verify is None:
        return
    if choice.span is None:
        raise click.UsageError(
            "--verify needs samples that the search does not use: say which those are with --samples"
        )
    if verify.start < choice.span.stop and choice.span.start < verify.stop:
        raise click.UsageError(f"--verify {verify} and --samples {choice.span} overlap; verify on other samples")


def _require_folders(*paths: Path | None) -> None:
    """Refuse before hours of work what could not be written after them."""
    from tflq.errors import OutputError

    for path in paths:
        if path is not None and (path.is_dir() or not os.access(path.parent, os.W_OK)):
            raise OutputError(f"{path}: cannot be written: name a file in a folder that exists and can be written")


def _verified(
    subject: Subject, problem: Problem, found: PrecisionSearch, span: Span | None, choice: TrialChoice
) -> Result | None:
    from tflq.precision.evaluate import evaluate

    if span is None or found.chosen is None:
        return None
    other = subject.problem(problem.target, (problem.assignments, problem.rules), span, choice, problem.in_float)
    return evaluate(other, found.chosen.result.trial)


def _write(
    path: Path | None,
    points: Path | None,
    problem: Problem,
    found: PrecisionSearch,
    span: Span | None,
    verified: Result | None,
) -> None:
    from tflq.converters.settings_file import SettingsFile, settings_bytes
    from tflq.files import write_bytes

    if points is not None:
        write_bytes(points, points_csv(found))
    if path is None or found.chosen is None:
        return
    layers = (*problem.rules, *problem.layer_texts(found.chosen.bits))
    about = {
        "size_bytes": found.chosen.size_bytes,
        "counted": found.plan.counted,
        "samples": str(span) if span else f"0:{found.samples}",
        "required": {"accuracy_percent": found.requirement.accuracy_percent, "sqnr_db": found.requirement.sqnr_db},
        "found": result_text(found.chosen.result),
        "verified": None if verified is None else result_text(verified),
    }
    content = settings_bytes(SettingsFile(found.target, problem.assignments, layers), about)
    write_bytes(path, content)

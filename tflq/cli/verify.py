"""`tflq verify`: every tensor against TFLite."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from tflq.api.baseline import BaselineResult, freeze, verify_baseline
from tflq.api.options import CalibrationOptions, SampleOptions, TargetOptions
from tflq.api.verify import DEFAULT_SAMPLES, VerifyOptions, VerifyResult, verify
from tflq.cli import output
from tflq.cli.help import SectionedCommand
from tflq.cli.in_force import BACKEND_OPTION
from tflq.cli.options import (
    JOBS_OPTION,
    SCHEDULER_OPTION,
    STATE_OPTION,
    STRICT_OPTION,
    ModelPath,
    calibration_options,
    judging,
    output_option,
    path_option,
    sample_options,
    target_options,
)
from tflq.cli.outputs import writing
from tflq.diagnosis.verify import TensorVerdict
from tflq.oracle.package import Kernels, Package

if TYPE_CHECKING:
    from tflq.interpreter.execution.engine import State


@click.command("verify", cls=SectionedCommand)
@click.argument("model", type=ModelPath(), required=False)
@sample_options(DEFAULT_SAMPLES)
@output_option(
    "--freeze",
    "frozen",
    metavar="FILE.json",
    help="Do not ask TFLite: write what this run gives, for --baseline to check later.",
)
@path_option(
    "--baseline",
    metavar="FILE.json",
    help="Repeat the run that --freeze wrote and say what has changed; MODEL, if given, takes the place of its model.",
)
@target_options("With --freeze: the integers of this target.")
@calibration_options
@output_option("--junit", metavar="FILE.xml", help="Write the result as JUnit XML too.")
@click.option(
    "--oracle",
    "package",
    type=click.Choice(get_args(Package)),
    default="auto",
    show_default=True,
    help="The package that holds TFLite; auto takes litert, else tensorflow.",
)
@click.option(
    "--kernels",
    type=click.Choice(get_args(Kernels)),
    default="BUILTIN_REF",
    show_default=True,
    help="TFLite's reference kernels, its optimized ones, or what it uses by default (with XNNPACK).",
)
@STATE_OPTION
@BACKEND_OPTION
@JOBS_OPTION
@SCHEDULER_OPTION
@STRICT_OPTION
@click.option("--all", "show_all", is_flag=True, help="List every tensor, not only those that differ.")
@judging
@writing
def command(
    model: str | None,
    samples: SampleOptions,
    frozen: Path | None,
    baseline: Path | None,
    target: TargetOptions,
    calibration: CalibrationOptions,
    junit: Path | None,
    package: Package,
    kernels: Kernels,
    strict: bool,
    show_all: bool,
    state: State | None,
    jobs: int,
    scheduler: str | None,
    as_json: bool,
) -> int:
    """Run MODEL in tflq and in TFLite and compare every tensor bit for bit (NaN equals NaN).

    Without --input the samples are random, within what the model's operators allow. Exit status 1 if anything differs
    that docs/operators.md does not list as known.
    """
    has_target = target != TargetOptions() or not calibration.is_empty
    if (frozen is not None or baseline is not None) and (jobs > 1 or scheduler is not None):
        raise click.UsageError("--jobs and --scheduler are for a run beside TFLite; leave them away")
    if baseline is not None:
        if frozen is not None or samples.inputs or samples.count or has_target:
            raise click.UsageError("--baseline repeats a frozen run: model aside, what it runs stands in the file")
        return _check_baseline(baseline, model, junit, as_json)
    if model is None:
        raise click.UsageError("name a MODEL, or a run to repeat with --baseline FILE.json")
    if frozen is not None:
        if junit is not None:
            raise click.UsageError("--freeze checks nothing; leave --junit away")
        return _freeze(model, frozen, samples, target, calibration, state, as_json)
    if has_target:
        raise click.UsageError("TFLite runs the model as it is; a target's run is checked with --freeze and --baseline")
    options = VerifyOptions(package, kernels, state, strict, jobs, scheduler)
    found = verify(model, samples, options, progress=output.progress)
    if junit is not None:
        found.write_junit(junit)
    output.show(found, as_json, lambda: _print(model, found, show_all))
    return 0 if found.is_right else 1


def _print(model: str, result: VerifyResult, show_all: bool) -> None:
    """Print the table of tensors and the sentence that sums it up."""
    verdict = result.verdict
    shown = [t for t in verdict.tensors if show_all or not t.difference.is_equal]
    if shown:
        columns = ("operator", "tensor", "type", "differing", "of", "largest", "first difference")
        output.table(
            columns, [_row(t) for t in shown], right=("operator", "differing", "of", "largest"), least=("type", "of")
        )
        output.line()
    total = verdict.total
    output.line(
        f"{model}: {total.differing} of {total.elements} elements differ from TFLite: {len(verdict.compared)} tensors, "
        f"{verdict.samples} samples, {verdict.identity}"
    )
    for known in verdict.known:
        output.line(f"known: {known.elements} elements, because {known.reason}")
    for reason, count in verdict.not_compared.items():
        output.line(f"not compared: {count} tensors that TFLite does not return ({reason})")
    output.lines(map(str, result.wide_multipliers))
    if not verdict.compared:
        output.line("nothing was compared: TFLite returned no tensor")


def _row(tensor: TensorVerdict) -> tuple[str, ...]:
    difference = tensor.difference
    return (
        "-" if tensor.operator is None else str(tensor.operator),
        output.short(tensor.name),
        f"{tensor.dtype}[{','.join(map(str, tensor.shape))}]",
        str(difference.differing) if tensor.unavailable is None else "-",
        str(difference.elements) if tensor.unavailable is None else "-",
        output.number(difference.largest) if difference.differing else "",
        tensor.unavailable or tensor.words,
    )


def _freeze(
    model: str,
    path: Path,
    samples: SampleOptions,
    target: TargetOptions,
    calibration: CalibrationOptions,
    state: State | None,
    as_json: bool,
) -> int:
    found = freeze(model, path, samples, target=target, calibration=calibration, state=state, progress=output.progress)
    text = f"frozen: {path}: {len(found.baseline.tensors)} tensors, {found.samples} samples of {model}"
    output.show(found, as_json, lambda: output.line(text))
    return 0


def _check_baseline(path: Path, model: str | None, junit: Path | None, as_json: bool) -> int:
    found = verify_baseline(path, model, progress=output.progress)
    if junit is not None:
        found.write_junit(junit)
    output.show(found, as_json, lambda: _print_changes(found))
    return 0 if found.is_equal else 1


def _print_changes(found: BaselineResult) -> None:
    output.lines(found.files)
    if found.changes:
        output.table(("tensor", "change"), [(output.short(c.tensor), c.what) for c in found.changes])
        output.line()
    changed, total = len(found.changes), len(found.baseline.tensors)
    made = f"{found.path}: frozen by tflq {found.baseline.version}"
    if changed:
        output.line(f"{made}: {changed} changes in {total} tensors, the first in '{found.changes[0].tensor}'")
    else:
        output.line(f"{made}: all {total} tensors are as they were")

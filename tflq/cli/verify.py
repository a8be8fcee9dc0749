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
    RUNTIME_OPTION,
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
from tflq.oracle.package import Kernels, Package

if TYPE_CHECKING:
    from tflq.interpreter.execution.engine import State
    from tflq.interpreter.runtimes import RuntimeName


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
@RUNTIME_OPTION
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
    runtime: RuntimeName,
    strict: bool,
    show_all: bool,
    state: State | None,
    jobs: int,
    scheduler: str | None,
) -> int:
    """Run MODEL in tflq and in TFLite and compare every tensor bit for bit (NaN equals NaN).

    Without --input the samples are random, within what the model's operators allow. Exit status 1 if anything differs
    that docs/differences/tflite_operators.md does not list as known.
    """
    has_target = target != TargetOptions() or not calibration.is_empty
    if (frozen is not None or baseline is not None) and (jobs > 1 or scheduler is not None):
        raise click.UsageError("--jobs and --scheduler are for a run beside TFLite; leave them away")
    if baseline is not None:
        if frozen is not None or samples.inputs or samples.count or has_target:
            raise click.UsageError("--baseline repeats a frozen run: model aside, what it runs stands in the file")
        return _judge(verify_baseline(baseline, model, progress=output.progress), junit, show_all)
    if model is None:
        raise click.UsageError("name a MODEL, or a run to repeat with --baseline FILE.json")
    if frozen is not None:
        if junit is not None:
            raise click.UsageError("--freeze checks nothing; leave --junit away")
        return output.show(
            freeze(
                model,
                frozen,
                samples,
                target=target,
                calibration=calibration,
                state=state,
                progress=output.progress,
            )
        )
    if has_target:
        raise click.UsageError("TFLite runs the model as it is; a target's run is checked with --freeze and --baseline")
    options = VerifyOptions(package, kernels, runtime, state, strict, jobs, scheduler)
    return _judge(verify(model, samples, options, progress=output.progress), junit, show_all)


def _judge(found: VerifyResult | BaselineResult, junit: Path | None, show_all: bool) -> int:
    if junit is not None:
        found.write_junit(junit)
    return output.show(found, *(("tensors",) if show_all else ()))

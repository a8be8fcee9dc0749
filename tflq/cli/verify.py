"""`tflq verify`: compare every tensor with TFLite."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tflq.api.baseline import BaselineResult, freeze, verify_baseline
from tflq.api.options import CalibrationOptions, SampleOptions, TargetOptions
from tflq.api.verify import DEFAULT_SAMPLES, VerifyOptions, VerifyResult, verify
from tflq.cli import output
from tflq.cli.help import SectionedCommand
from tflq.cli.in_force import BACKEND_OPTION
from tflq.cli.options import (
    ModelPath,
    calibration_options,
    judging,
    output_option,
    path_option,
    sample_options,
    target_options,
    worker_options,
)
from tflq.cli.outputs import writing
from tflq.cli.record_options import option

if TYPE_CHECKING:
    from tflq.interpreter.execution.engine import State
    from tflq.interpreter.runtimes import RuntimeName
    from tflq.oracle.package import Kernels, Package

_option = partial(option, VerifyOptions)


@click.command("verify", cls=SectionedCommand)
@click.argument("model", type=ModelPath(), required=False)
@sample_options(DEFAULT_SAMPLES)
@output_option(
    "--freeze",
    "frozen",
    metavar="FILE.json",
    help="Output file for the tensors of this run, for a later check with --baseline; TFLite does not run.",
)
@path_option(
    "--baseline",
    metavar="FILE.json",
    help="File of --freeze: repeat its run and list the changes; MODEL, if given, replaces its model.",
)
@target_options("Target to quantize for, with --freeze.")
@calibration_options
@output_option("--junit", metavar="FILE.xml", help="Output file for the result as JUnit XML.")
@_option("package", "--oracle")
@_option("kernels")
@_option("runtime")
@_option("state")
@BACKEND_OPTION
@worker_options(VerifyOptions)
@_option("strict")
@click.option("--all", "show_all", is_flag=True, help="List all tensors instead of unequal tensors only.")
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

    Without --input the samples are random, within the range that the model's operators allow. Exit status 1 for a
    difference that docs/differences/tflite_operators.md does not list as known.
    """
    has_target = target != TargetOptions() or not calibration.is_empty
    if (frozen is not None or baseline is not None) and (jobs > 1 or scheduler is not None):
        raise click.UsageError("--jobs and --scheduler need a comparison with TFLite; omit them")
    if baseline is not None:
        if frozen is not None or samples.inputs or samples.count or has_target:
            raise click.UsageError("--baseline repeats a frozen run; its file defines everything except the model")
        return _show(verify_baseline(baseline, model, progress=output.progress), junit, show_all)
    if model is None:
        raise click.UsageError("the model is missing; name a MODEL, or a run to repeat with --baseline FILE.json")
    if frozen is not None:
        if junit is not None:
            raise click.UsageError("--freeze performs no check; omit --junit")
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
        raise click.UsageError("TFLite runs the unchanged model; check a target's run with --freeze and --baseline")
    options = VerifyOptions(package, kernels, runtime, state, strict, jobs, scheduler)
    return _show(verify(model, samples, options, progress=output.progress), junit, show_all)


def _show(result: VerifyResult | BaselineResult, junit: Path | None, show_all: bool) -> int:
    if junit is not None:
        result.write_junit(junit)
    return output.show(result, *(("tensors",) if show_all else ()))
